#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""JSON Schema as hearthd enforces it, keyword by keyword: what is admitted is
validated by python3-jsonschema at temperature 2, from a trained model and one
of random weights; what is not enforced is refused and named. Prints TAP."""
import http.client
import json
import os
import subprocess
import sys
import tempfile

try:
    from jsonschema import Draft202012Validator
    try:
        FORMATS = Draft202012Validator.FORMAT_CHECKER
    except AttributeError:
        from jsonschema import draft202012_format_checker as FORMATS
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("1..1\nok 1 - schemas # SKIP python3-jsonschema for draft 2020-12 is not installed")
    sys.exit(0)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
MODEL = os.environ.get("HEARTH_MODEL", os.path.join(ROOT, "models", "home-q8_0.gguf"))
SEEDS = int(os.environ.get("SCHEMA_SEEDS", "2"))
count = failed = 0


def check(ok, name, detail=""):
    global count, failed
    count += 1
    print(("ok" if ok else "not ok"), count, "-", name, flush=True)
    if not ok:
        failed += 1
        print("# " + str(detail).replace("\n", "\n# ")[:1500], flush=True)
    return ok


def obj(props, required=(), **more):
    return {"type": "object", "properties": props, "required": list(required), **more}


S = {"type": "string"}
I = {"type": "integer"}
TREE = {"$defs": {"node": obj({"name": {"type": "string", "maxLength": 8}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}}, ["name"],
                              additionalProperties=False)}, "$ref": "#/$defs/node"}

# name: schema that must be enforced
ENFORCED = {
    # the core vocabulary
    "$ref and $defs": {"$defs": {"a/b~c": {"type": "integer", "minimum": 3, "maximum": 4}}, **obj({"x": {"$ref": "#/$defs/a~1b~0c"}, "y": {"$ref": "#/$defs/a~1b~0c"}}, ["x", "y"])},
    "$ref: recursion": {"$defs": TREE["$defs"], **obj({"root": {"$ref": "#/$defs/node"}}, ["root"])},
    "$ref: to the whole": obj({"v": {"type": "boolean"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, ["v", "next"], additionalProperties=False),
    "$id, $schema, $comment, $anchor": {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/x", "$comment": "c", "type": "boolean"},
    # any value
    "true": True,
    "empty": {},
    # types
    **{"type " + t: {"type": t} for t in ("null", "boolean", "integer", "number", "string", "array", "object")},
    "type: several": {"type": ["integer", "null", "string"]},
    # any type
    "const": {"const": {"a": [1, 2.5, None, "x\n\u00e9\"\\"]}},
    "enum": {"enum": ["on", "off", 3, None, False, {"k": []}, "\u4e2d \U0001f600", "\\\"/"]},
    "enum with type": {"type": "string", "enum": ["a", 1, "b"]},
    # numbers
    "minimum and maximum": {"type": "integer", "minimum": -17, "maximum": 123},
    "maximum alone": {"type": "integer", "maximum": -5},
    "minimum alone": {"type": "integer", "minimum": 1000001},
    "exclusive bounds": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 3},
    "number bounds": {"type": "number", "minimum": -1.5, "maximum": 2.25},
    "number exclusive bounds": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "number: one side": {"type": "number", "minimum": 0.125},
    "multipleOf": {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 100},
    "both kinds of bounds": {"type": "integer", "minimum": 2, "exclusiveMinimum": 4, "maximum": 9, "exclusiveMaximum": 7},
    # strings
    "minLength and maxLength": {"type": "string", "minLength": 3, "maxLength": 5},
    "maxLength 0": {"type": "string", "maxLength": 0},
    "minLength alone": {"type": "string", "minLength": 2},
    "pattern": {"type": "string", "pattern": "^[a-f0-9]{4}-(on|off)$"},
    "pattern: not anchored": {"type": "string", "pattern": "ab+c"},
    "pattern: classes": {"type": "string", "pattern": "^\\d{2}:\\d{2}( [ap]m)?$"},
    "pattern: signs that JSON escapes": {"type": "string", "pattern": "^[\"\\\\/]{2,4}$"},
    **{"format " + f: {"type": "string", "format": f} for f in ("date", "time", "date-time", "duration", "uuid", "ipv4", "email")},
    # arrays
    "items": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems": 6},
    "minItems and maxItems": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
    "prefixItems": {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "integer"}, {"type": "null"}], "items": False},
    "prefixItems and items": {"type": "array", "prefixItems": [{"type": "boolean"}], "items": {"enum": [7, 8]}, "minItems": 2, "maxItems": 5},
    "prefixItems and minItems": {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "null"}], "items": False, "minItems": 2},
    "uniqueItems of one": {"type": "array", "items": I, "maxItems": 1, "uniqueItems": True},
    "uniqueItems false": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3, "uniqueItems": False},
    # objects
    "properties, none required": obj({"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"type": "boolean"}}),
    "required": obj({"a": {"type": "boolean"}, "b": {"type": "null"}, "c": {"type": "boolean"}}, ["b"]),
    "additionalProperties false": obj({"a": {"type": "boolean"}}, [], additionalProperties=False),
    "additionalProperties true": obj({"name": {"type": "boolean"}}, ["name"], additionalProperties=True),
    "additionalProperties by schema": obj({"nam": {"type": "boolean"}, "name": {"type": "null"}}, ["nam"], additionalProperties={"type": "integer", "minimum": 0, "maximum": 9}),
    "additionalProperties alone": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "names that JSON escapes": obj({"a\"b": {"type": "boolean"}, "tab\t": {"type": "boolean"}, "\u00e9\u4e2d": {"type": "boolean"}, "": {"type": "null"}}, ["a\"b", "tab\t", "\u00e9\u4e2d", ""]),
    "objects in arrays in objects": obj({"a": {"type": "array", "minItems": 1, "maxItems": 2, "items": obj({"b": {"type": "array", "maxItems": 2, "items": obj({"c": {"enum": [1, "x"]}}, ["c"])}}, ["b"])}}, ["a"]),
    # combining
    "anyOf": {"anyOf": [{"type": "boolean"}, {"type": "string", "maxLength": 4}, obj({"a": {"type": "null"}}, ["a"])]},
    "anyOf: overlapping": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 50}, {"type": "integer", "minimum": 40, "maximum": 99}]},
    "oneOf: types differ": {"oneOf": [{"type": "boolean"}, {"type": "null"}, {"type": "array", "items": {"type": "null"}, "maxItems": 2}]},
    "oneOf: a constant differs": {"oneOf": [obj({"k": {"const": "a"}, "n": {"type": "boolean"}}, ["k", "n"]), obj({"k": {"const": "b"}, "s": {"type": "string", "maxLength": 3}}, ["k", "s"])]},
    "allOf of one": {"allOf": [{"type": "integer", "minimum": 1, "maximum": 2}]},
    # what changes nothing
    "annotations": {"type": "boolean", "title": "t", "description": "d", "default": False, "deprecated": True, "readOnly": True, "writeOnly": True, "examples": [True]},
    "contentEncoding": {"type": "string", "maxLength": 8, "contentEncoding": "base64", "contentMediaType": "image/png"},
    "x- keys": {"type": "boolean", "x-order": 3},
    # white space in the schema's own texts, and the words of the grammar
    "texts like the grammar's own": {"enum": ["</tool_call>", "<tool_call>", "<|im_end|>", "}\n", "\": \""]},
}

# name: schema, the word that the refusal must name
REFUSED = {
    "$dynamicRef": ({"$dynamicRef": "#x"}, "$dynamicRef"),
    "$dynamicAnchor": ({"$dynamicAnchor": "x", "type": "boolean"}, "$dynamicAnchor"),
    "$ref outside": ({"$ref": "https://example.com/schema"}, "$ref"),
    "$ref to nowhere": ({"$ref": "#/$defs/no"}, "$ref"),
    "$ref to itself": ({"$ref": "#"}, ""),
    "$ref with siblings": ({"$defs": {"a": I}, "$ref": "#/$defs/a", "maximum": 3}, "maximum"),
    "not": ({"not": {"type": "string"}}, "not"),
    "if": ({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}, "if"),
    "then": ({"type": "object", "then": {"required": ["b"]}}, "then"),
    "else": ({"type": "object", "else": {"required": ["b"]}}, "else"),
    "allOf of two": ({"allOf": [I, {"minimum": 3}]}, "allOf"),
    "oneOf that overlaps": ({"oneOf": [I, {"type": "number"}]}, "oneOf"),
    "contains": ({"type": "array", "contains": I}, "contains"),
    "minContains": ({"type": "array", "minContains": 1}, "minContains"),
    "maxContains": ({"type": "array", "maxContains": 1}, "maxContains"),
    "uniqueItems": ({"type": "array", "items": I, "uniqueItems": True}, "uniqueItems"),
    "items as a list": ({"type": "array", "items": [I]}, "items"),
    "additionalItems": ({"type": "array", "additionalItems": False}, "additionalItems"),
    "unevaluatedItems": ({"type": "array", "unevaluatedItems": False}, "unevaluatedItems"),
    "unevaluatedProperties": (obj({"a": S}, unevaluatedProperties=False), "unevaluatedProperties"),
    "patternProperties": ({"type": "object", "patternProperties": {"^a": I}}, "patternProperties"),
    "propertyNames": ({"type": "object", "propertyNames": {"maxLength": 3}}, "propertyNames"),
    "dependentSchemas": ({"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}, "dependentSchemas"),
    "dependentRequired": ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
    "dependencies": ({"type": "object", "dependencies": {"a": ["b"]}}, "dependencies"),
    "minProperties": ({"type": "object", "minProperties": 2}, "minProperties"),
    "maxProperties": ({"type": "object", "maxProperties": 2}, "maxProperties"),
    "required without a description": ({"type": "object", "properties": {"a": S}, "required": ["b"]}, "required"),
    "contentSchema": ({"type": "string", "contentSchema": I}, "contentSchema"),
    "format that is not known": ({"type": "string", "format": "idn-hostname"}, "format"),
    "pattern with a look ahead": ({"type": "string", "pattern": "^(?=a)b"}, "pattern"),
    "pattern with a back reference": ({"type": "string", "pattern": "^(a)\\1$"}, "pattern"),
    "pattern and length": ({"type": "string", "pattern": "^a+$", "maxLength": 3}, "pattern"),
    "a keyword that nobody knows": ({"type": "string", "minLenght": 3}, "minLenght"),
    "nullable": ({"type": "string", "nullable": True}, "nullable"),
    "false": (False, "false"),
    "type that is none": ({"type": "text"}, "type"),
    "type as a number": ({"type": 3}, "type"),
    "bounds that contradict": ({"type": "integer", "minimum": 5, "maximum": 4}, ""),
    "lengths that contradict": ({"type": "string", "minLength": 5, "maxLength": 4}, "minLength"),
    "items that contradict": ({"type": "array", "minItems": 5, "maxItems": 4}, "minItems"),
    "minLength below nought": ({"type": "string", "minLength": -1}, "minLength"),
    "an enum of nothing": ({"enum": []}, "enum"),
    "a const that the type denies": ({"type": "string", "const": 3}, "const"),
    "endless without an end": ({"$defs": {"a": obj({"a": {"$ref": "#/$defs/a"}}, ["a"])}, "$ref": "#/$defs/a"}, ""),
    "a length beyond all": ({"type": "string", "maxLength": 10**9}, "maxLength"),
    "nested too deep": (json.loads('{"type":"array","items":' * 300 + '{}' + "}" * 300), "deep"),
}


class Daemon:
    def __init__(self, model, ctx):
        self.dir = tempfile.TemporaryDirectory()
        self.log = open(os.path.join(self.dir.name, "log"), "w+")
        conf = os.path.join(self.dir.name, "c.yaml")
        with open(conf, "w") as f:
            f.write(f"model: {{path: {model}, context: {ctx}, sessions: 2, threads: 2}}\nhttp: {{port: 0}}\n")
        self.proc = subprocess.Popen([os.path.join(BUILD, "bin/hearthd"), "-c", conf], stderr=self.log, stdin=subprocess.DEVNULL)
        self.port = None
        import time
        for _ in range(2400):
            with open(self.log.name) as f:
                text = f.read()
            if "on http://" in text:
                self.port = int(text.split("on http://")[1].split()[0].rsplit(":", 1)[1])
                return
            if self.proc.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(text)

    def post(self, path, body):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        c.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        r = c.getresponse()
        out = r.read()
        c.close()
        return r.status, json.loads(out)

    def stop(self):
        self.proc.terminate()
        return self.proc.wait(60)


def response_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


def wrong(text, schema):
    """Why @text is not an instance of @schema, or None."""
    try:
        v = json.loads(text, parse_constant=lambda c: 1 / 0)
    except (ValueError, ZeroDivisionError) as e:
        return f"not JSON: {e}: {text!r}"
    errors = list(Draft202012Validator(schema, format_checker=FORMATS).iter_errors(v))
    return f"{errors[0].message}: {text!r}" if errors else None


def enforced(d, random):
    for name, schema in ENFORCED.items():
        bad = None
        for seed in range(1, SEEDS + 1):
            more = {"temperature": 2, "seed": seed, "max_tokens": 60 + 100 * (seed % 3), "response_format": response_format(schema)}
            for who, body in ((d, {"prompt": f"Answer number {seed} in JSON: ", **more}), (random, {"prompt": f"{name} {seed}", **more})):
                status, j = who.post("/v1/completions", body)
                if status != 200:
                    bad = bad or j
                    continue
                c = j["choices"][0]
                bad = bad or (c["finish_reason"] != "stop" and f"finish_reason {c['finish_reason']}: {c['text']!r}") or wrong(c["text"], schema)
        check(not bad, "enforced: " + name, bad)


def refused(d):
    for name, (schema, word) in REFUSED.items():
        for where, body in (("response_format", {"response_format": response_format(schema)}),
                            ("tools", {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]})):
            status, j = d.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8, **body})
            text = j.get("error", {}).get("message", "")
            # a tool's parameters are an object: what is no schema for one is refused as that
            check(status == 400 and word in text and j["error"]["param"] == where, f"refused in {where}: {name}", (status, j))


def ambiguous(d):
    """What could go on in a thousand ways at once is refused before a token is made, and soon."""
    pattern = "^(" + "|".join(f"[^x]*{c}.{{40}}" for c in "abcdefghijklmnopqrst") + ")$"
    schema = {"type": "string", "pattern": pattern}
    for name, body in (("response_format", {"response_format": response_format(schema)}),
                       ("a tool, forced", {"tools": [{"type": "function", "function": {"name": "f", "parameters": obj({"a": schema}, ["a"])}}], "tool_choice": "required"})):
        status, j = d.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100, **body})
        check(status == 400 and "ambiguous" in j["error"]["message"], "refused: a pattern that is too ambiguous, in " + name, (status, j))
    status, j = d.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100, "response_format": response_format({"type": "boolean"})})
    check(status == 200, "and others are answered", (status, j))


def called(d):
    """Every call that comes is one of the tools', and its arguments validate."""
    tools, seen = {}, 0
    for i, (name, schema) in enumerate(ENFORCED.items()):
        if isinstance(schema, dict) and schema.get("type") == "object" and "$ref" not in json.dumps(schema):
            tools[f"tool_{i}"] = schema
    body = {"messages": [{"role": "user", "content": "do something"}], "tools": [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in tools.items()],
            "temperature": 2, "max_tokens": 300}
    for choice in ("required", *({"type": "function", "function": {"name": n}} for n in list(tools)[:4])):
        for seed in range(1, SEEDS + 1):
            status, j = d.post("/v1/chat/completions", {**body, "tool_choice": choice, "seed": seed})
            c = j["choices"][0] if status == 200 else None
            calls = c and c["message"].get("tool_calls") or []
            bad = (not calls or c["finish_reason"] != "tool_calls") and (status, j)
            for t in calls:
                f = t["function"]
                bad = bad or f["name"] not in tools and f or wrong(f["arguments"], tools[f["name"]]) or (isinstance(choice, dict) and f["name"] != choice["function"]["name"] and f)
                seen += 1
            check(not bad, f"a call by force ({choice if isinstance(choice, str) else choice['function']['name']}, seed {seed}) is valid", bad)
    print(f"# {seen} calls")


def main():
    if not os.path.exists(MODEL):
        print("1..1\nok 1 - schemas # SKIP there is no model at " + os.path.relpath(MODEL, ROOT))
        return 0
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "random.gguf")
        subprocess.run([os.path.join(BUILD, "tests/test_service"), path], check=True)
        d, random = Daemon(MODEL, 2048), Daemon(path, 512)
        try:
            refused(d)
            enforced(d, random)
            ambiguous(d)
            called(d)
        except Exception:
            import traceback
            check(False, "the test itself", traceback.format_exc())
        check(d.stop() == 0 and random.stop() == 0, "both daemons end cleanly")
    print("1..%d" % count)
    return 1 if failed else 0


sys.exit(main())
