"""A Spark application and a Kafka round trip on the cluster that the demonstration uses."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster import clusters, gobuild
from devcluster.paths import REPOSITORY

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

NAME = "dev"
NAMESPACE = "devcluster-test"

_PI = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi}
spec:
  type: Python
  mode: cluster
  image: spark-drain-example:dev
  imagePullPolicy: IfNotPresent
  mainApplicationFile: local:///opt/spark/examples/src/main/python/pi.py
  arguments: ["4"]
  sparkVersion: 4.2.0
  restartPolicy: {type: OnFailure, onFailureRetries: 0, onSubmissionFailureRetries: 3, onSubmissionFailureRetryInterval: 5}
  sparkConf:
    # Ten seconds by default, which a submission on a busy machine does not keep to.
    spark.kubernetes.submission.connectionTimeout: "60000"
    spark.kubernetes.submission.requestTimeout: "60000"
    spark.kubernetes.driver.connectionTimeout: "60000"
    spark.kubernetes.driver.requestTimeout: "60000"
    spark.kubernetes.driver.request.cores: 100m
    spark.kubernetes.executor.request.cores: 100m
    spark.kubernetes.executor.deleteOnTermination: "false"
    # Not before both are there: one alone could do all of the work.
    spark.scheduler.minRegisteredResourcesRatio: "1.0"
    spark.scheduler.maxRegisteredResourcesWaitingTime: 240s
  driver: {cores: 1, memory: 600m, serviceAccount: spark}
  executor:
    cores: 1
    instances: 2
    memory: 600m
    affinity:
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {spark-role: executor}}
"""

_ROUND_TRIP = """
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

server, topic = sys.argv[1:]
KafkaAdminClient(bootstrap_servers=server).create_topics([NewTopic(topic, -1, 1)])
producer = KafkaProducer(bootstrap_servers=server, acks="all")
for number in range(100):
    producer.send(topic, str(number).encode(), partition=number % 4)
producer.flush()
consumer = KafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest", consumer_timeout_ms=20000)
consumer.assign([TopicPartition(topic, partition) for partition in sorted(consumer.partitions_for_topic(topic))])
read = []
while len(read) < 100:
    read.append(int(next(consumer).value))
print(len(consumer.assignment()), "partitions,", "equal" if sorted(read) == list(range(100)) else read)
"""

Kubectl = Callable[..., str]


def devcluster(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "devcluster", *arguments], check=False, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    given = os.environ.get("SPARK_DRAIN_TEST_KUBECONFIG")
    was_up = given is not None or (clusters.provider_of(NAME) is not None and clusters.find(NAME).is_up())
    if given is None:
        config = devcluster("up", "--name", NAME, "--with-demo-deps", "--job-namespace", NAMESPACE).strip()
        devcluster("build-images", "--name", NAME, "spark-drain-example:dev")
    else:
        config = given

    def run(*arguments: str, text: str | None = None) -> str:
        command = [str(gobuild.build(gobuild.KUBE) / "kubectl"), "--kubeconfig", config, "--namespace", NAMESPACE, *arguments]
        done = subprocess.run(command, check=False, input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield run
    run("delete", "sparkapplications.sparkoperator.k8s.io,pods", "--all", "--now", "--ignore-not-found")
    if not was_up:
        devcluster("down", "--name", NAME)


def test_an_application_completes_with_an_executor_on_each_node(kubectl: Kubectl) -> None:
    kubectl("delete", "sparkapplications.sparkoperator.k8s.io", "pi", "--ignore-not-found")
    kubectl("apply", "-f", "-", text=_PI)
    deadline = time.monotonic() + 420
    state = ""
    while state not in {"COMPLETED", "FAILED"}:
        assert time.monotonic() < deadline, f"state {state!r}: " + kubectl("get", "pods", "-o", "wide")
        time.sleep(1)
        state = kubectl("get", "sparkapplications.sparkoperator.k8s.io", "pi", "-o", "jsonpath={.status.applicationState.state}")
    assert state == "COMPLETED", kubectl("logs", "pi-driver")
    assert "Pi is roughly 3.1" in kubectl("logs", "pi-driver")
    executors = json.loads(kubectl("get", "pods", "--selector", "spark-role=executor", "-o", "json"))["items"]
    assert len({pod["spec"]["nodeName"] for pod in executors}) == len(executors) == 2


def test_what_a_pod_writes_to_kafka_it_reads_back(kubectl: Kubectl, tmp_path: Path) -> None:
    script = tmp_path / "round_trip.py"
    script.write_text(_ROUND_TRIP)
    kubectl("delete", "configmap,pod", "round-trip", "--ignore-not-found", "--now")
    kubectl("create", "configmap", "round-trip", f"--from-file={script}")
    container = {
        "name": "main",
        "image": "spark-drain-example:dev",
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "/scripts/round_trip.py", "kafka.kafka.svc:9092", f"round-trip-{time.time_ns()}"],
        "volumeMounts": [{"name": "scripts", "mountPath": "/scripts"}],
    }
    volumes = [{"name": "scripts", "configMap": {"name": "round-trip"}}]
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "round-trip"}, "spec": spec}))
    deadline = time.monotonic() + 120
    while (phase := kubectl("get", "pod", "round-trip", "-o", "jsonpath={.status.phase}")) not in {"Succeeded", "Failed"}:
        assert time.monotonic() < deadline, kubectl("describe", "pod", "round-trip")
        time.sleep(0.5)
    assert (phase, kubectl("logs", "round-trip")) == ("Succeeded", "4 partitions, equal\n")
