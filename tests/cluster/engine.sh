#!/usr/bin/env bash
# A Docker engine where none runs: `engine.sh start`, and `engine.sh stop` for one that this script started.
#
# For machines without an init system, such as CI: Debian's packages, and the daemon started by hand. It needs root.
# Whoever has an engine needs none of this; whoever can have none is told so, and tests on a local node.
set -euo pipefail

state=${SLOTKEEPER_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slotkeeper}
pid_file=$state/dockerd.pid
log=$state/dockerd.log

# Tried in turn: kernels differ in what they let a daemon do.
flag_sets=("" "--storage-driver=vfs" "--storage-driver=vfs --iptables=false --ip6tables=false")

main() {
    case ${1:-} in
        start) start ;;
        stop) stop ;;
        *) fail "usage: engine.sh start|stop" ;;
    esac
}

start() {
    mkdir -p "$state"
    install_packages
    if answers; then
        echo "a Docker engine runs: $(docker version --format '{{.Server.Version}}')"
        return
    fi
    local flags
    for flags in "${flag_sets[@]}"; do
        if start_daemon "$flags"; then
            echo "Docker engine $(docker version --format '{{.Server.Version}}') started${flags:+ with $flags}"
            return
        fi
    done
    tail -n 20 "$log" >&2
    fail "dockerd did not start"
}

install_packages() {
    local missing=()
    command -v docker >/dev/null || missing+=(docker.io)
    compose_works || missing+=(docker-compose)
    answers || command -v dockerd >/dev/null || missing+=(docker.io iptables)
    [ ${#missing[@]} -gt 0 ] || return 0
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || fail "${missing[*]} missing, and only root on Debian can install it"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >>"$log" 2>&1 ||
        fail "apt-get could not install ${missing[*]}: see $log"
}

compose_works() {
    docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1
}

answers() {
    docker info >/dev/null 2>&1
}

# Up to twenty seconds, or until the daemon is gone again.
start_daemon() {
    # shellcheck disable=SC2086 # the flags are words
    setsid dockerd $1 >>"$log" 2>&1 </dev/null &
    local pid=$!
    echo "$pid" >"$pid_file"
    for _ in $(seq 100); do
        if answers; then return 0; fi
        if ! kill -0 "$pid" 2>/dev/null; then break; fi
        sleep 0.2
    done
    stop
    return 1
}

stop() {
    [ -f "$pid_file" ] || return 0
    local pid
    pid=$(cat "$pid_file")
    rm -f "$pid_file"
    # The number may belong to something else by now.
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] || return 0
    kill "$pid"
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.2
    done
    kill -KILL "$pid" 2>/dev/null || true
}

fail() {
    echo "engine.sh: $*" >&2
    exit 1
}

main "$@"
