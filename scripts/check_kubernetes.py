"""Checks deploy/helm/procession and deploy/kubernetes: Helm's lint, rendering with several values, the schemas of
Kubernetes (strict: an unknown key is a fault), and what no schema knows: that names lead somewhere, that nothing runs as
root, that faults in values are refused. Called by scripts/test-kubernetes.sh."""

import copy
import pathlib
import sys
import tempfile

import helm_python as helm
import kubernetes_validate
import yaml

CHART = pathlib.Path("deploy/helm/procession")
PLAIN = pathlib.Path("deploy/kubernetes")
# The oldest that Chart.yaml allows, one between, the newest with schemas.
VERSIONS = ["1.27", "1.32", "1.37"]
# Kinds of operators, which Kubernetes has no schema of.
FOREIGN = {"ServiceMonitor", "Kustomization"}

DATABASE = {"database": {"existingSecret": "procession-database"}}
FULL = {
    **DATABASE,
    "image": {
        "repository": "registry.bank.example/procession",
        "digest": "sha256:" + "0" * 64,
        "pullSecrets": ["registry"],
    },
    "replicas": 3,
    "secretKey": {"existingSecret": "procession-key"},
    "jobSecrets": {"existingSecret": "procession-jobs"},
    "extraArgs": ["--label", "etl"],
    "extraEnv": [{"name": "PROCESSION_LOG_FORMAT", "value": "json"}],
    "extraVolumes": [{"name": "data", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "data", "mountPath": "/data"}],
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
        "tls": [{"secretName": "batch-tls", "hosts": ["batch.bank.example"]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "podAnnotations": {"note": "x"},
    "podLabels": {"team": "finance"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "batch", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
}
BARE = {
    "database": {"existingSecret": "db", "passwordKey": ""},
    "migrate": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
    "serviceAccount": {"create": False},
}
# What must be refused, and a word of the refusal.
REFUSED = [
    ({}, "database.existingSecret"),
    ({**DATABASE, "replica": 3}, "replica"),
    ({**DATABASE, "replicas": "three"}, "replicas"),
    ({**DATABASE, "image": {"repository": "procession", "digest": "latest"}}, "digest"),
    ({**DATABASE, "database": {"existingSecret": "db", "url": "postgres://x"}}, "url"),
]

faults = []


def check(holds, text):
    if not holds:
        faults.append(text)


def documents(text):
    return [d for d in yaml.safe_load_all(text) if d]


def render(values):
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema(values)
        parts = chart.render(values, name="procession", namespace="procession")
    return [d for path, text in sorted(parts.items()) if path.endswith(".yaml") for d in documents(text)]


def check_schemas(where, found):
    for document in found:
        name = f"{where}: {document['kind']} {document['metadata'].get('name', '')}"
        if document["kind"] in FOREIGN:
            continue
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as fault:
                check(False, f"{name}, Kubernetes {version}: {fault}")


def check_pod(where, pod, has_password):
    volumes = {v["name"] for v in pod["volumes"]}
    used = set()
    check(pod["automountServiceAccountToken"] is False, f"{where}: the pod has a token of the cluster")
    check(pod["securityContext"]["runAsNonRoot"] is True, f"{where}: the pod may run as root")
    for container in pod.get("initContainers", []) + pod["containers"]:
        name = f"{where}: {container['name']}"
        safe = container["securityContext"]
        check(safe["allowPrivilegeEscalation"] is False and safe["capabilities"] == {"drop": ["ALL"]}, f"{name}: rights")
        check(safe["readOnlyRootFilesystem"] is True, f"{name}: the root file system can be written")
        mounts = {m["name"] for m in container["volumeMounts"]}
        used |= mounts
        check(mounts <= volumes, f"{name}: mounts {mounts - volumes}, which is no volume")
        names = [e["name"] for e in container["env"]]
        check(len(names) == len(set(names)), f"{name}: a variable twice: {names}")
        check("PROCESSION_DB" in names, f"{name}: no database")
        check(("PROCESSION_DB_PASSWORD_FILE" in names) is has_password, f"{name}: the password")
        for variable in container["env"]:
            value = variable.get("value", "")
            check("://" not in value, f"{name}: {variable['name']} has an URL, which may hold a password")
        ports = {p["name"] for p in container.get("ports", [])}
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            if kind in container:
                port = container[kind]["httpGet"]["port"]
                check(port in ports, f"{name}: {kind} asks the port {port}")
    check(used == volumes, f"{where}: nobody mounts {volumes - used}")
    serve = pod["containers"][0]
    check("PROCESSION_NODE" in [e["name"] for e in serve["env"]], f"{where}: nodes have no names of their own")
    paths = [serve[kind]["httpGet"]["path"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")]
    check(paths == ["/healthz", "/healthz", "/readyz"], f"{where}: probes ask {paths}")


def check_links(where, found):
    def of(kind):
        return {d["metadata"]["name"]: d for d in found if d["kind"] == kind}

    (workload,) = of("StatefulSet").values()
    spec, pod = workload["spec"], workload["spec"]["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"].items()
    check(spec["selector"]["matchLabels"].items() <= labels, f"{where}: the selector misses its own pods")
    check(spec["serviceName"] in of("Service"), f"{where}: no Service {spec['serviceName']}")
    ports = {p["name"] for p in pod["containers"][0]["ports"]}
    for name, service in of("Service").items():
        check(service["spec"]["selector"].items() <= labels, f"{where}: Service {name} finds no pod")
        check({p["targetPort"] for p in service["spec"]["ports"]} <= ports, f"{where}: a port of Service {name}")
    for name, budget in of("PodDisruptionBudget").items():
        check(budget["spec"]["selector"]["matchLabels"].items() <= labels, f"{where}: budget {name} finds no pod")
    for ingress in of("Ingress").values():
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                to = path["backend"]["service"]
                offered = {p["name"] for p in of("Service")[to["name"]]["spec"]["ports"]}
                check(to["port"]["name"] in offered, f"{where}: the ingress leads to no port of {to['name']}")
    for monitor in of("ServiceMonitor").values():
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        watched = [s for s in of("Service").values() if wanted <= s["metadata"]["labels"].items()]
        offered = [p["name"] for s in watched for p in s["spec"]["ports"]]
        check([e["port"] for e in monitor["spec"]["endpoints"]] == offered, f"{where}: the monitor watches {offered}")
    for volume in pod["volumes"]:
        if "configMap" in volume:
            check(volume["configMap"]["name"] in of("ConfigMap"), f"{where}: no ConfigMap of volume {volume['name']}")
    account = pod["serviceAccountName"]
    check(account in of("ServiceAccount") or account == "default", f"{where}: no account {account}")
    has_password = any(
        item["path"] == "db-password"
        for volume in pod["volumes"]
        for source in volume.get("projected", {}).get("sources", [])
        for item in source["secret"]["items"]
    )
    check_pod(where, pod, has_password)


def without_marks(found):
    """What both ways of deploying have in common: no labels of Helm, no digest of the settings."""
    plain = []
    for document in copy.deepcopy(found):
        metas = [document["metadata"]]
        if document["kind"] == "StatefulSet":
            metas.append(document["spec"]["template"]["metadata"])
        for meta in metas:
            meta.pop("annotations", None)
            for label in ("helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"):
                meta["labels"].pop(label, None)
        if document["kind"] == "ConfigMap":
            lines = document["data"]["procession.toml"].splitlines()
            document["data"] = [line for line in lines if line and not line.startswith("#")]
        plain.append(document)
    return sorted(plain, key=lambda d: (d["kind"], d["metadata"]["name"]))


def differences(path, left, right):
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left.keys() | right.keys():
            yield from differences(f"{path}.{key}", left.get(key), right.get(key))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for at, pair in enumerate(zip(left, right)):
            yield from differences(f"{path}[{at}]", *pair)
    elif left != right:
        yield f"{path}: the chart has {left!r}, deploy/kubernetes has {right!r}"


def main():
    report = helm.lint(str(CHART), DATABASE, strict=True)
    notes = [m for m in report["messages"] if m["severity"] >= 2]
    check(not notes and not report["errors"], f"helm lint: {notes} {report['errors']}")

    rendered = 0
    for where, values in {"defaults": DATABASE, "everything": FULL, "little": BARE}.items():
        found = render(values)
        rendered += len(found)
        check_schemas(where, found)
        check_links(where, found)
    for values, word in REFUSED:
        try:
            render(values)
            check(False, f"{values} is not refused")
        except helm.HelmError as refusal:
            check(word in str(refusal), f"the refusal of {values} does not name {word}: {refusal}")

    plain = [d for f in ("namespace.yaml", "procession.yaml") for d in documents((PLAIN / f).read_text())]
    check_schemas("deploy/kubernetes", plain)
    ours = [d for d in plain if d["kind"] != "Namespace"]
    check_links("deploy/kubernetes", ours)
    chart, hand = without_marks(render(DATABASE)), without_marks(ours)
    names = [[f"{d['kind']} {d['metadata']['name']}" for d in side] for side in (chart, hand)]
    check(names[0] == names[1], f"the chart has {names[0]}, deploy/kubernetes {names[1]}")
    for left, right in zip(chart, hand):
        faults.extend(differences(left["kind"], left, right))

    (kustomization,) = documents((PLAIN / "kustomization.yaml").read_text())
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    check([i["newTag"] for i in kustomization["images"]] == [version], "kustomization.yaml names another version")
    for name in kustomization["resources"]:
        check((PLAIN / name).exists(), f"kustomization.yaml: no {name}")

    for fault in faults:
        print(f"test-kubernetes: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    print(
        f"test-kubernetes: Helm {helm.helm_sdk_version()}: lint, {rendered} documents of 3 sets of values, {len(REFUSED)} "
        f"faults refused; {len(plain)} documents by hand; schemas of Kubernetes {', '.join(VERSIONS)}, strict"
    )
    if len(sys.argv) > 1:
        target = pathlib.Path(sys.argv[1])
        with tempfile.TemporaryDirectory() as folder:
            helm.package(str(CHART), destination=folder)
            (made,) = pathlib.Path(folder).iterdir()
            target.write_bytes(made.read_bytes())
        print(f"test-kubernetes: {target}")


main()
