"""The chart, rendered and linted by the real helm."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from spark_drain_operator.handlers import register
from spark_drain_operator.settings import NodeSettings, Settings

from devcluster import gobuild
from tools import manifests

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/spark-drain"
NAMESPACED = ("--set", "rbac.scope=Namespaces,watchNamespaces={one,two}")
NODES = ("--set", "nodeWatch.enabled=true")
AGENTS = ("--set", "agentNamespaces[0].namespace=one,agentNamespaces[0].serviceAccounts={spark,other}")


@pytest.fixture(scope="session")
def helm() -> str:
    return str(gobuild.build(gobuild.HELM) / "helm")


def rendered(helm: str, *arguments: str) -> list[dict[str, Any]]:
    command = [helm, "template", "spark-drain", str(CHART), "--namespace", "spark-drain", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if document]


def refused(helm: str, *arguments: str) -> str:
    command = [helm, "template", "spark-drain", str(CHART), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] == kind]


def rights(role: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for rule in role["rules"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield resource, verb


def test_helm_lint_is_strict(helm: str) -> None:
    done = subprocess.run([helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_operator_ends_within_the_grace_period_of_its_pod(helm: str) -> None:
    (deployment,) = of_kind(rendered(helm), "Deployment")
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > register._STOP_SECONDS + register._WATCHES_SECONDS


@pytest.mark.parametrize("path", manifests.MANIFESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_manifests_made_from_others_are_up_to_date(path: Path) -> None:
    assert path.read_text() == manifests.MANIFESTS[path](), "run python -m tools.manifests"


def _named(body: dict[str, Any]) -> tuple[str, str]:
    return body["kind"], body["metadata"]["name"]


@pytest.mark.parametrize(("folder", "options"), [("base", ()), ("node-watch", NODES)])
def test_kustomize_builds_what_the_chart_installs(helm: str, folder: str, options: tuple[str, ...]) -> None:
    kubectl = gobuild.build(gobuild.KUBE) / "kubectl"
    done = subprocess.run([str(kubectl), "kustomize", str(ROOT / "kustomize" / folder)], capture_output=True, text=True, check=True)
    built = [document for document in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if document["kind"] != "Namespace"]
    installed = rendered(helm, *options)
    for each in (*built, *installed):
        each["metadata"].pop("annotations", None)
        each["metadata"]["labels"] = {}
    assert sorted(built, key=_named) == sorted(installed, key=_named)


def test_definitions_are_rendered_unchanged_but_for_metadata(helm: str) -> None:
    definitions = {each["spec"]["names"]["singular"]: each for each in of_kind(rendered(helm), "CustomResourceDefinition")}
    assert definitions.keys() == {"executorplacement", "pipelinedrain"}
    for name, definition in definitions.items():
        original = yaml.load((ROOT / f"crds/{name}.yaml").read_text(), Loader=yaml.CSafeLoader)
        assert definition["spec"] == original["spec"]
        assert definition["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    for unkept in of_kind(rendered(helm, "--set", "crds.keep=false"), "CustomResourceDefinition"):
        assert "annotations" not in unkept["metadata"]
    assert not of_kind(rendered(helm, "--set", "crds.enabled=false"), "CustomResourceDefinition")


def test_the_pod_keeps_to_the_restricted_profile(helm: str) -> None:
    (deployment,) = of_kind(rendered(helm), "Deployment")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "health"}


def test_probes_have_kubernetes_defaults_where_the_values_are_taken_away(helm: str) -> None:
    (deployment,) = of_kind(rendered(helm, "--set", "livenessProbe=null", "--set", "readinessProbe=null"), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    probe = {"httpGet": {"path": "/healthz", "port": "health"}}
    assert (container["livenessProbe"], container["readinessProbe"]) == (probe, probe)


def test_the_command_line_is_one_that_the_operator_reads(helm: str) -> None:
    from spark_drain_operator.cli import parse

    options = ("--set", "allowDelete=true,watchNamespaces={one,two},operator.logLevel=DEBUG,operator.workers=2,operator.resyncSeconds=7")
    (deployment,) = of_kind(rendered(helm, *options), "Deployment")
    settings, parsed = parse(deployment["spec"]["template"]["spec"]["containers"][0]["args"])
    assert settings.namespaces == ("one", "two")
    assert (settings.allow_delete, settings.workers, settings.resync_seconds) == (True, 2, 7.0)
    assert (parsed.log_level, parsed.liveness) == ("DEBUG", "http://0.0.0.0:8080/healthz")


def test_nodes_are_watched_with_what_the_values_say(helm: str) -> None:
    from spark_drain_operator.cli import parse

    def parsed(*arguments: str) -> Settings:
        (deployment,) = of_kind(rendered(helm, *arguments), "Deployment")
        return parse(deployment["spec"]["template"]["spec"]["containers"][0]["args"])[0]

    assert parsed().nodes is None
    assert parsed("--set", r"nodeWatch.taints.karpenter\.sh/disrupted=60").nodes is None
    values = yaml.safe_load((CHART / "values.yaml").read_text())["nodeWatch"]
    default = NodeSettings()
    on = parsed(*NODES).nodes
    assert on == NodeSettings(
        taints=values["taints"],
        cordon_seconds=values["cordonSeconds"],
        urgent_seconds=values["urgentSeconds"],
        at_once=values["atOnce"],
        budgets=True,
    )
    assert (default.cordon_seconds, default.urgent_seconds, default.at_once) == (on.cordon_seconds, on.urgent_seconds, on.at_once)
    changed = parsed(*NODES, "--set", r"nodeWatch.budgets=false,nodeWatch.atOnce=2,nodeWatch.taints.karpenter\.sh/disruption=null").nodes
    assert changed is not None
    assert (changed.budgets, changed.at_once, values["taints"].keys() - changed.taints.keys()) == (False, 2, {"karpenter.sh/disruption"})


def test_watching_nodes_is_a_right_of_its_own(helm: str) -> None:
    def granted(*arguments: str) -> set[tuple[str, str]]:
        objects = rendered(helm, *arguments, "--set", "rbac.aggregateToUserRoles=false")
        return {right for kind in ("ClusterRole", "Role") for role in of_kind(objects, kind) for right in rights(role)}

    created = {("pipelinedrains", "create"), ("executorplacements", "create")}
    budgets = {("poddisruptionbudgets", verb) for verb in ("list", "create", "patch", "delete")}
    for scope in ((), NAMESPACED):
        assert granted(*scope, *NODES) - granted(*scope) == created | budgets | {("nodes", "list"), ("nodes", "watch")}
    (role,) = of_kind(rendered(helm, *NAMESPACED, *NODES, "--set", "rbac.aggregateToUserRoles=false"), "ClusterRole")
    assert {resource for resource, _ in rights(role)} == {"nodes"}


@pytest.mark.parametrize(
    ("arguments", "image"),
    [
        ((), "docker.io/sparkdrain/spark-drain-operator:0.1.0"),
        (("--set", "image.repository=mine/operator,image.tag=dev"), "mine/operator:dev"),
        (("--set", f"image.digest=sha256:{'0' * 64}"), f"docker.io/sparkdrain/spark-drain-operator@sha256:{'0' * 64}"),
    ],
)
def test_image(helm: str, arguments: tuple[str, ...], image: str) -> None:
    (deployment,) = of_kind(rendered(helm, *arguments), "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image


def test_a_namespaced_installation_has_no_cluster_wide_right(helm: str) -> None:
    objects = rendered(helm, *NAMESPACED)
    assert not of_kind(objects, "ClusterRoleBinding")
    assert [role["metadata"]["namespace"] for role in of_kind(objects, "Role")] == ["one", "two"]
    assert [binding["metadata"]["namespace"] for binding in of_kind(objects, "RoleBinding")] == ["one", "two"]
    assert "needs watchNamespaces" in refused(helm, "--set", "rbac.scope=Namespaces")


def test_deleting_applications_is_a_right_of_its_own(helm: str) -> None:
    def operator_rights(*arguments: str) -> set[tuple[str, str]]:
        (role,) = [role for role in of_kind(rendered(helm, *arguments), "ClusterRole") if role["metadata"]["name"] == "spark-drain"]
        return set(rights(role))

    assert operator_rights("--set", "allowDelete=true") - operator_rights() == {("sparkapplications", "delete")}


def test_nobody_may_everything(helm: str) -> None:
    roles = of_kind(rendered(helm, *AGENTS, *NODES), "ClusterRole") + of_kind(rendered(helm, *NAMESPACED, *AGENTS, *NODES), "Role")
    for role in roles:
        assert "*" not in json.dumps(role["rules"])
        assert not {("secrets", "get"), ("secrets", "list")} & set(rights(role))


def test_the_agent_gets_only_what_it_needs(helm: str) -> None:
    objects = rendered(helm, *AGENTS)
    (role,) = of_kind(objects, "Role")
    assert set(rights(role)) == {("configmaps", verb) for verb in ("get", "list", "watch", "create", "patch")}
    (binding,) = of_kind(objects, "RoleBinding")
    assert [(subject["name"], subject["namespace"]) for subject in binding["subjects"]] == [("spark", "one"), ("other", "one")]


def test_names_of_digits_are_texts(helm: str) -> None:
    """Tenants are often numbered."""
    names = (
        "fullnameOverride",
        "nameOverride",
        "serviceAccount.name",
        "priorityClassName",
        "agentNamespaces[0].namespace",
        "argocd.namespace",
    )
    settings = [f"{name}=123" for name in (*names, "agentNamespaces[0].serviceAccounts[0]", "watchNamespaces[0]")]
    digits = [argument for setting in settings for argument in ("--set-string", setting)]
    for scope in ("Cluster", "Namespaces"):
        objects = rendered(helm, *digits, "--set", f"rbac.scope={scope},argocd.customizations=true")
        for each in objects:
            named = [each["metadata"], *each.get("subjects", ()), *([each["roleRef"]] if "roleRef" in each else ())]
            assert all(isinstance(value, str) for one in named for value in (one["name"], one.get("namespace", "")))
            assert all(isinstance(value, str) for value in each["metadata"].get("labels", {}).values())
        (pod,) = [each["spec"]["template"]["spec"] for each in of_kind(objects, "Deployment")]
        assert (pod["serviceAccountName"], pod["priorityClassName"]) == ("123", "123")


@pytest.mark.parametrize("name", ["a" * 62 + "--b", "a" * 61 + "---" + "b" * 20])
def test_names_that_are_cut_end_well(helm: str, name: str) -> None:
    (deployment,) = of_kind(rendered(helm, "--set", f"fullnameOverride={name}"), "Deployment")
    assert deployment["metadata"]["name"] in {"a" * 62, "a" * 61}


def test_user_roles_are_aggregated_unless_switched_off(helm: str) -> None:
    def aggregated(*arguments: str) -> int:
        return sum("aggregate-to" in json.dumps(role["metadata"]["labels"]) for role in of_kind(rendered(helm, *arguments), "ClusterRole"))

    assert aggregated() == 2
    assert aggregated("--set", "rbac.aggregateToUserRoles=false") == 0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--set", "imgae.tag=dev"), "imgae"),
        (("--set", "serviceAccount.name=a' || true || 'b"), "serviceAccount"),
        (("--set", "image.pullPolicy=Sometimes"), "pullPolicy"),
        (("--set", "operator.workers=0"), "workers"),
        (("--set", "livenessProbe.successThreshold=3"), "successThreshold"),
        (("--set", "nodeWatch.atOnce=0"), "atOnce"),
        (("--set", "nodeWatch.taints.a=soon"), "taints"),
        (("--set", "nodeWatch.taints.a b=1"), "a b"),
        (("--set", "agentNamespaces[0].namespace=one"), "serviceAccounts"),
        (("--set", "watchNamespaces={Not_A_Name}"), "watchNamespaces"),
        (("--set", "fullnameOverride=Not_A_Name"), "fullnameOverride"),
        (("--set", "operator.extraEnv[0].name=A,operator.extraEnv[0].value=1"), "extraEnv"),
        (("--set", "agentNamespaces[0].namespace=one,agentNamespaces[0].serviceAccounts={system:x}"), "serviceAccounts"),
        (("--set", r"commonLabels.app\.kubernetes\.io/name=another"), "commonLabels"),
        (("--set", r"podLabels.app\.kubernetes\.io/name=another"), "podLabels"),
        (("--set", "operator=null"), "missing propert"),
        (("--set", "nodeWatch=null"), "missing propert"),
    ],
)
def test_wrong_values_are_named(helm: str, arguments: tuple[str, ...], name: str) -> None:
    assert name in refused(helm, *arguments)


def test_the_schema_knows_every_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(values, schema)
    assert set(schema["properties"]) - {"global"} == set(values)


def test_notes_say_what_to_do_next(helm: str) -> None:
    command = [helm, "install", "spark-drain", str(CHART), "--dry-run=client", *AGENTS]
    notes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("NOTES:")[2]
    assert "one: spark, other" in notes
    assert "kind: PipelineDrain" in notes


def test_an_installation_without_objects_of_the_whole_cluster(helm: str) -> None:
    off = ("admissionPolicies.configMaps", "admissionPolicies.applications", "rbac.aggregateToUserRoles", "crds.enabled")
    objects = rendered(helm, *NAMESPACED, "--set", ",".join(f"{name}=false" for name in off))
    assert {each["kind"] for each in objects} == {"Deployment", "Role", "RoleBinding", "ServiceAccount"}


def test_a_namespace_of_agents_is_named_once(helm: str) -> None:
    twice = ",".join(f"agentNamespaces[{n}].namespace=one,agentNamespaces[{n}].serviceAccounts={{a{n}}}" for n in (0, 1))
    assert "names one twice" in refused(helm, "--set", twice)


def test_a_second_release_as_the_page_has_it(helm: str, tmp_path: Path) -> None:
    """It watches its own namespace alone, and the agents there have their permissions."""
    section = (ROOT / "docs/operations.md").read_text().partition("\n## A second release\n")[2]
    (tmp_path / "values.yaml").write_text(section.partition("```yaml\n")[2].partition("```")[0])
    objects = rendered(helm, "--values", str(tmp_path / "values.yaml"))
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "--namespaces=team-b-pipelines" in container["args"]
    assert {each["metadata"]["namespace"] for each in objects if each["kind"] in ("Role", "RoleBinding")} == {"team-b-pipelines"}
    assert not any(each["kind"] == "CustomResourceDefinition" for each in objects)
