#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what a real kube-apiserver answers to the requests in these files, into the files.

    record.py PROGRAMS FILE...
    record.py PROGRAMS --types     prints what becomes src/patch/built_in.txt

PROGRAMS is a folder below which etcd and kube-apiserver are, such as target/tools. Both run for the
time of the recording only, without controllers and the admission that fills in pods and nodes, so
that nobody else writes. A file is a list of
cases, a case a list of requests to names that no other case uses:

    {"name": "...", "requests": [{"do": "PATCH /api/v1/... json", "query": {}, "body": ..., "answer": ...}]}

The word after the path is the kind of patch. Out of an answer are taken uid and resourceVersion. The
first requests of all cases are sent in one second or more, then the second ones, and so on: a time
is written as second N of 2026, N being the number of the request at which it was set. A list is
written as the names of its items, an error as its Status without what all have.
"""

import http.client, json, pathlib, re, ssl, subprocess, sys, tempfile, time
from urllib.parse import urlencode

PORTS = {"etcd": 23791, "peer": 23801, "api": 26444}
KINDS = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def start(programs, folder):
    """etcd and the API server, as processes."""
    def program(name):
        return str(next(pathlib.Path(programs).glob(f"**/{name}")))

    script = """
        new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $new -keyout ca.key -out ca.crt -days 2 -subj /CN=recording
        openssl ecparam -name prime256v1 -genkey -noout -out accounts.key
        openssl ec -in accounts.key -pubout -out accounts.pub
        echo 'recorder,recorder,recorder,system:masters' > tokens.csv"""
    subprocess.run(["sh", "-ec", script], cwd=folder, check=True, capture_output=True)
    store = f"http://127.0.0.1:{PORTS['etcd']}"
    lines = [
        [program("etcd"), "--data-dir=etcd", "--unsafe-no-fsync",
         f"--listen-client-urls={store}", f"--advertise-client-urls={store}",
         f"--listen-peer-urls=http://127.0.0.1:{PORTS['peer']}"],
        [program("kube-apiserver"), f"--etcd-servers={store}", f"--secure-port={PORTS['api']}",
         "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1",
         "--tls-cert-file=ca.crt", "--tls-private-key-file=ca.key",
         "--service-account-key-file=accounts.pub", "--service-account-signing-key-file=accounts.key",
         "--service-account-issuer=https://kubernetes.default.svc",
         "--service-cluster-ip-range=10.96.0.0/16", "--token-auth-file=tokens.csv",
         "--disable-admission-plugins=DefaultTolerationSeconds,Priority,ServiceAccount,TaintNodesByCondition",
         "--authorization-mode=RBAC"],
    ]
    return [subprocess.Popen(line, cwd=folder, stdout=open(f"{folder}/log", "a"), stderr=subprocess.STDOUT)
            for line in lines]


def send(verb, path, kind, body):
    """Status code and body of the answer."""
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", PORTS["api"], context=context, timeout=30)
    headers = {"Authorization": "Bearer recorder", "User-Agent": "recorder/1",
               "Content-Type": KINDS.get(kind, "application/json")}
    connection.request(verb, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text[:1] == b"{" else text.decode()


def await_server():
    for _ in range(120):
        try:
            if send("GET", "/api/v1/namespaces/default", "", None)[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit("no API server after a minute")


def written(value, windows):
    """The value with times as request numbers."""
    if isinstance(value, dict):
        return {key: written(item, windows) for key, item in value.items()}
    if isinstance(value, list):
        return [written(item, windows) for item in value]
    if isinstance(value, str):
        return TIME.sub(lambda found: number(found[0], windows), value)
    return value


def number(text, windows):
    for at, (first, last) in enumerate(windows):
        if first <= text <= last:
            return f"2026-01-01T00:00:{at:02}Z"
    return text


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def answer_of(code, body, windows):
    if isinstance(body, dict) and "items" in body:
        return {"code": code, "names": [item["metadata"]["name"] for item in body["items"]]}
    if isinstance(body, dict) and body.get("kind") == "Status":
        for key in ("apiVersion", "kind", "metadata", "status", "code"):
            body.pop(key, None)
    elif isinstance(body, dict):
        for key in ("uid", "resourceVersion"):
            body.get("metadata", {}).pop(key, None)
    return {"code": code, "body": written(body, windows)}


def record(cases):
    windows, raw = [], {}
    for at in range(max(len(case["requests"]) for case in cases)):
        first, done = time.time(), ""
        for index, case in enumerate(cases):
            if at < len(case["requests"]):
                request = case["requests"][at]
                done += request["do"] + "\n"
                verb, path, *kind = request["do"].split(" ")
                path += "?" + urlencode(request.get("query", {}))
                raw[index, at] = send(verb, path, "".join(kind), request.get("body"))
        last = time.time()
        windows.append((stamp(first), stamp(last)))
        while any(verb in done for verb in ("POST", "PUT", "PATCH")) and stamp(time.time()) == stamp(last):
            time.sleep(0.05)
        if "POST /apis/apiextensions" in done:
            time.sleep(5)  # Until the new kind is served.
    for (index, at), (code, body) in raw.items():
        cases[index]["requests"][at]["answer"] = answer_of(code, body, windows)


KINDS_OF = {
    "api/v1": "ConfigMap Event LimitRange Namespace Node Pod ResourceQuota Secret Service ServiceAccount",
    "apis/admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration ValidatingAdmissionPolicy"
    " ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    "apis/apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apis/apps/v1": "DaemonSet Deployment ReplicaSet",
    "apis/batch/v1": "Job",
    "apis/coordination.k8s.io/v1": "Lease",
    "apis/events.k8s.io/v1": "Event",
    "apis/policy/v1": "PodDisruptionBudget",
    "apis/rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "apis/scheduling.k8s.io/v1": "PriorityClass",
}


def facts(schema):
    """Words for how a value is merged."""
    words = ["always"] if schema.get("default") == {} else []
    words += ["atomic"] if schema.get("x-kubernetes-map-type") == "atomic" else []
    kind = schema.get("x-kubernetes-list-type")
    words += ["set"] if kind == "set" else []
    if kind == "map":
        items = target(schema["items"])[1]
        default = lambda key: items["properties"].get(key, {}).get("default")
        key = lambda key: key if default(key) is None else f"{key}={json.dumps(default(key))}"
        words.append("keys:" + ",".join(map(key, schema["x-kubernetes-list-map-keys"])))
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    if "merge" in strategy:
        words.append("merge:" + schema.get("x-kubernetes-patch-merge-key", ""))
    return words


SCHEMAS = {}


def target(schema):
    """Short name and schema of the type that is referred to, if any."""
    for part in [schema, *schema.get("allOf", [])]:
        if "$ref" in part:
            name = part["$ref"].rsplit("/", 1)[1]
            return ".".join([name.split(".")[-3], name.split(".")[-1]]), SCHEMAS[name]
    return None, schema


def walk(name, schema, types):
    """Whether anything of the type is not as it is by default; if so it is in `types`."""
    if name in types:
        return bool(types[name])
    types[name] = own = facts(schema)
    rows = []
    for field, value in sorted(schema.get("properties", {}).items()):
        words = facts(value)
        if field in schema.get("required", []) and any(word.startswith("keys:") for word in words):
            words.insert(0, "always")
        if "items" in value and not words:
            continue  # One value, whatever is in it.
        inner = value.get("items") or value.get("additionalProperties") or value
        of, there = target(inner)
        words += ["free"] if "additionalProperties" in value else []
        if of and "atomic" not in own and walk(of, there, types):
            words.append("of:" + of)
        if words and words != ["always"] or "always" in words and "properties" in there:
            rows.append(" ".join(["", field, *words]))
    types[name] = [" ".join([name, *own]), *rows] if own or rows else []
    return bool(types[name])


def print_types():
    types = {}
    for path, kinds in KINDS_OF.items():
        schemas = send("GET", "/openapi/v3/" + path, "", None)[1]["components"]["schemas"]
        SCHEMAS.update(schemas)
        for name, schema in schemas.items():
            of = [kind["kind"] for kind in schema.get("x-kubernetes-group-version-kind", [])]
            if set(of) & set(kinds.split()) and name.endswith("." + of[0]):
                walk(*target({"$ref": "/" + name}), types)
    for name in sorted(types):
        if types[name]:
            print("\n".join(types[name]))


def printed(cases):
    """A request a line."""
    line = lambda request: "  " + json.dumps(request, ensure_ascii=False)
    case = lambda case: ' {"name": %s, "requests": [\n%s\n ]}' % (
        json.dumps(case["name"]), ",\n".join(map(line, case["requests"])))
    return "[\n" + ",\n".join(map(case, cases)) + "\n]\n"


def main():
    programs, *files = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        processes = start(programs, folder)
        try:
            await_server()
            if files == ["--types"]:
                return print_types()
            for path in files:
                cases = json.loads(pathlib.Path(path).read_text())
                record(cases)
                pathlib.Path(path).write_text(printed(cases))
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait()


main()
