#!/usr/bin/env bash
# Runs the tests of remote applications (docs/job-types.md#flink, #spark) against a real Flink session cluster and a
# real standalone Spark cluster on loopback:
#
#   scripts/test-engines.sh [flink|spark] [ARGS]        starts both clusters or the named one, runs the tests, stops them;
#                                                       ARGS go to the tests
#   scripts/test-engines.sh start FOLDER                starts a Flink cluster, prints URL and jar
#   scripts/test-engines.sh restart-jobmanager FOLDER   kills its JobManager and starts another at the same address
#   scripts/test-engines.sh stop FOLDER                 stops it and removes what it left
#   scripts/test-engines.sh start-spark FOLDER          starts a Spark master and worker, prints URLs and jar
#   scripts/test-engines.sh restart-master FOLDER       kills the master and starts another at the same address
#   scripts/test-engines.sh stop-spark FOLDER           stops both and removes what they left
#
# The engines come from PyPI (the wheel apache-flink-libraries, 330 MB; the source of pyspark, 456 MB) and are kept like
# the servers of scripts/server-versions.sh. They need Python with pip, unzip, curl, and a JDK 17
# (openjdk-17-jdk-headless).
set -euo pipefail
shopt -s inherit_errexit

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/server-functions.sh
. "$repo/scripts/server-functions.sh"

flink_version=2.3.0
cache=${PROCESSION_TEST_SERVER_CACHE:-}
if [ -z "$cache" ] && am_root; then cache=/var/cache/procession-test-servers; fi
cache=${cache:-${XDG_CACHE_HOME:-$HOME/.cache}/procession-test-servers}
home=$cache/flink-$flink_version/pyflink
spark_version=4.3.0
spark_home=$cache/spark-$spark_version

for word in base java.lang java.net java.io java.nio java.lang.reflect java.text java.time java.util \
    java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch; do
    [ "$word" = base ] || opens+=("--add-opens=java.base/$word=ALL-UNNAMED")
done

need_programs() {
    local program
    for program in python3 unzip curl java javac; do
        command -v "$program" >/dev/null ||
            die "$program is missing; install python3, unzip, curl, openjdk-17-jdk-headless"
    done
}

install_flink() {
    need_programs
    [ -d "$home/lib" ] && return
    say "getting Flink $flink_version from PyPI"
    local new=$cache/flink-$flink_version.new
    rm -rf "$new" && mkdir -p "$new"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$new" \
        "apache-flink-libraries==$flink_version" >&2 || die "PyPI gave no apache-flink-libraries $flink_version"
    unzip -q "$new"/*.whl -d "$new"
    rm "$new"/*.whl
    mv "$new" "$cache/flink-$flink_version"
}

class_path() { printf '%s:' "$home"/lib/*.jar; }

build_probe() { # build_probe FOLDER
    mkdir -p "$1/classes"
    javac -nowarn -cp "$(class_path)" -d "$1/classes" "$repo/tests/engines/Probe.java"
    python3 - "$1" <<'PY'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(folder / "probe.jar", "w") as jar:
    jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    for file in sorted((folder / "classes").iterdir()):
        jar.write(file, file.name)
PY
}

launch() { # launch FOLDER NAME HEAP CLASS [OPTION…]
    local folder=$1 name=$2 heap=$3
    shift 3
    FLINK_CONF_DIR=$folder/conf setsid java "-Xmx$heap" "${opens[@]}" -cp "$(class_path)" "$1" \
        --configDir "$folder/conf" "${@:2}" >>"$folder/$name.log" 2>&1 </dev/null &
    echo $! >"$folder/$name.pid"
}

launch_jobmanager() {
    launch "$1" jobmanager 256m org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint \
        --executionMode cluster
}

slots_are_there() { curl -fsS "$1/overview" 2>/dev/null | grep -q '"slots-available":2'; }

wait_for_slots() { # wait_for_slots FOLDER
    local url since=$SECONDS
    url=$(cat "$1/url")
    until slots_are_there "$url"; do
        if [ $((SECONDS - since)) -gt 120 ]; then
            tail -n 20 "$1"/*.log >&2
            die "the Flink cluster has no slots after 120 s"
        fi
        sleep 0.5
    done
}

start() {
    local folder=$1 port rest setting memory=()
    install_flink
    mkdir -p "$folder/conf" "$folder/tmp" "$folder/upload"
    build_probe "$folder"
    port=$(free_port) rest=$(free_port)
    cat >"$folder/conf/config.yaml" <<YAML
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: $port
jobmanager.bind-host: 127.0.0.1
jobmanager.memory.process.size: 700m
taskmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
slot.request.timeout: 20000
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: $rest
web.upload.dir: $folder/upload
io.tmp.dirs: $folder/tmp
parallelism.default: 1
YAML
    for setting in cpu.cores=2.0 memory.task.heap.size=128mb memory.task.off-heap.size=0b \
        memory.framework.heap.size=64mb memory.framework.off-heap.size=64mb memory.managed.size=32mb \
        memory.network.min=32mb memory.network.max=32mb memory.jvm-metaspace.size=128mb \
        memory.jvm-overhead.min=64mb memory.jvm-overhead.max=64mb; do
        memory+=(-D "taskmanager.$setting")
    done
    echo "http://127.0.0.1:$rest" >"$folder/url"
    launch_jobmanager "$folder"
    launch "$folder" taskmanager 300m org.apache.flink.runtime.taskexecutor.TaskManagerRunner "${memory[@]}"
    wait_for_slots "$folder"
    printf '%s\n%s\n' "$(cat "$folder/url")" "$folder/probe.jar"
}

end_process() { # end_process FOLDER NAME
    local pid
    pid=$(cat "$1/$2.pid" 2>/dev/null) || return 0
    kill -9 "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

restart_jobmanager() {
    end_process "$1" jobmanager
    launch_jobmanager "$1"
    wait_for_slots "$1"
}

stop() {
    end_process "$1" taskmanager
    end_process "$1" jobmanager
    rm -rf "$1"
}

# --- Spark -----------------------------------------------------------------------------------------

install_spark() {
    need_programs
    [ -d "$spark_home/jars" ] && return
    say "getting Spark $spark_version from PyPI"
    local new=$spark_home.new
    rm -rf "$new" && mkdir -p "$new"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$new" \
        "pyspark==$spark_version" >&2 || die "PyPI gave no pyspark $spark_version"
    tar xzf "$new/pyspark-$spark_version.tar.gz" -C "$new" --strip-components 1
    # The layout of an installation of Spark.
    mv "$new/deps/jars" "$new/deps/bin" "$new/deps/sbin" "$new"
    mkdir -p "$new/python" "$new/conf"
    mv "$new/lib" "$new/python/lib"
    chmod +x "$new"/bin/* "$new"/sbin/*
    rm -rf "$new"/*.tar.gz "$new/jars/connect-repl" "$new/deps" "$new/pyspark" "$new/pyspark.egg-info"
    mv "$new" "$spark_home"
}

build_spark_probe() { # build_spark_probe FOLDER
    mkdir -p "$1/classes"
    javac -nowarn -cp "$spark_home/jars/*" -d "$1/classes" "$repo/tests/engines/SparkProbe.java"
    (cd "$1/classes" && python3 -m zipfile -c "$1/probe.jar" ./*.class)
}

launch_spark() { # launch_spark FOLDER NAME [OPTION…]
    local folder=$1 name=$2
    shift 2
    SPARK_HOME=$spark_home SPARK_SCALA_VERSION=2.13 SPARK_LOCAL_IP=127.0.0.1 SPARK_WORKER_DIR=$folder/work \
        setsid java -Xmx300m "${opens[@]}" -cp "$spark_home/jars/*" "$@" >>"$folder/$name.log" 2>&1 </dev/null &
    echo $! >"$folder/$name.pid"
}

launch_master() { # launch_master FOLDER
    local rpc rest ui
    rpc=$(cat "$1/rpc.port") rest=$(cat "$1/rest.port") ui=$(cat "$1/ui.port")
    launch_spark "$1" master -Dspark.master.rest.enabled=true -Dspark.master.rest.host=127.0.0.1 \
        "-Dspark.master.rest.port=$rest" org.apache.spark.deploy.master.Master \
        --host 127.0.0.1 --port "$rpc" --webui-port "$ui"
}

worker_is_there() { curl -fsS "$1/json/" 2>/dev/null | grep -q '"aliveworkers" : 1'; }

wait_for_worker() { # wait_for_worker FOLDER
    local url since=$SECONDS
    url=$(cat "$1/ui")
    until worker_is_there "$url"; do
        if [ $((SECONDS - since)) -gt 120 ]; then
            tail -n 20 "$1"/*.log >&2
            die "the Spark cluster has no worker after 120 s"
        fi
        sleep 0.5
    done
}

start_spark() { # start_spark FOLDER
    local folder=$1 name
    install_spark
    mkdir -p "$folder/work"
    build_spark_probe "$folder"
    for name in rpc rest ui; do free_port >"$folder/$name.port"; done
    echo "http://127.0.0.1:$(cat "$folder/rest.port")" >"$folder/url"
    echo "http://127.0.0.1:$(cat "$folder/ui.port")" >"$folder/ui"
    echo "$spark_home" >"$folder/home"
    launch_master "$folder"
    launch_spark "$folder" worker org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --port 0 \
        --webui-port 0 --cores 4 --memory 3g --work-dir "$folder/work" "spark://127.0.0.1:$(cat "$folder/rpc.port")"
    wait_for_worker "$folder"
    printf '%s\n%s\n%s\n' "$(cat "$folder/url")" "$(cat "$folder/ui")" "$folder/probe.jar"
}

restart_master() {
    end_process "$1" master
    launch_master "$1"
    wait_for_worker "$1"
}

stop_spark() {
    local pid
    # A worker that ends in order ends its drivers.
    pid=$(cat "$1/worker.pid" 2>/dev/null) && kill "$pid" 2>/dev/null && sleep 2
    end_process "$1" worker
    end_process "$1" master
    rm -rf "$1"
}

# --- tests -----------------------------------------------------------------------------------------

run_tests() { # run_tests [flink|spark] [ARG…]
    local engines=(flink spark) filters=()
    case ${1:-} in
        flink | spark)
            engines=("$1")
            shift
            ;;
    esac
    folder=$(mktemp -d /tmp/procession-engines.XXXXXX)
    trap 'stop "$folder/flink"; stop_spark "$folder/spark"; rm -rf "$folder"' EXIT
    local engine
    for engine in "${engines[@]}"; do
        filters+=("handler::$engine")
        case $engine in
            flink) start "$folder/flink" >&2 ;;
            spark) start_spark "$folder/spark" >&2 ;;
        esac
    done
    cd "$repo"
    PROCESSION_TEST_FLINK=$folder/flink PROCESSION_TEST_SPARK=$folder/spark \
        cargo test --test it -- --ignored --test-threads 1 "${filters[@]}" "$@"
}

case ${1:-} in
    start) start "$2" ;;
    restart-jobmanager) restart_jobmanager "$2" ;;
    stop) stop "$2" ;;
    start-spark) start_spark "$2" ;;
    restart-master) restart_master "$2" ;;
    stop-spark) stop_spark "$2" ;;
    *) run_tests "$@" ;;
esac
