"""``python -m tools.prepare``: build, before pytest starts, what its fixtures would otherwise build under a test's time limit."""

import sys

from devcluster import gobuild
from devcluster.errors import DevclusterError
from devcluster.progress import Progress
from tools.phases import phase

MODULES = (gobuild.KUBE, gobuild.HELM, gobuild.KIND)


def main() -> int:
    """Build every Go program that the tests run, unless it is cached."""
    missing = [module for module in MODULES if not gobuild.is_built(module)]
    progress = Progress(len(missing))
    try:
        for module in missing:
            with phase(f"build: {module.folder}"), progress.step(f"building {module.folder} from source, once per version"):
                gobuild.build(module)
    except DevclusterError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: the next run goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
