#!/bin/bash
# Finds a Python that can run tools/setup.py; everything else is decided there.
set -euo pipefail
cd "$(dirname "$0")/.."
# An interpreter inside .venv could not make .venv anew.
PATH=${PATH#"$PWD/.venv/bin:"}

usable='import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
        if [ -n "$candidate" ] && "$candidate" -c "$usable" 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

if ! python=$(find_python); then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "[setup] installing python3 and python3-venv with apt-get" >&2
        export DEBIAN_FRONTEND=noninteractive
        { apt-get update -q && apt-get install -qy --no-install-recommends python3 python3-venv; } </dev/null >&2
    fi
    if ! python=$(find_python); then
        echo "Python 3.11, 3.12 or 3.13 with the venv module is needed." >&2
        echo "Install it (Debian 12: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3.11 ..." >&2
        exit 1
    fi
fi
exec "$python" -m tools.setup "$@" </dev/null
