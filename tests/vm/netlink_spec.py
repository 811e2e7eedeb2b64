#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks uapi/hearth_netlink.yaml against the header and the module's policies.

  netlink_spec.py          TAP
  netlink_spec.py --write  writes uapi/linux/hearth_netlink.h from the spec

Reads the part of YAML that the spec uses: nested maps and lists by
indentation, one scalar a line, [a, b] lists.
"""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SPEC = os.path.join(TOP, "uapi/hearth_netlink.yaml")
HEADER = os.path.join(TOP, "uapi/linux/hearth_netlink.h")
MODULE = os.path.join(TOP, "kmod/netlink.c")


def parse(lines, indent=0):
    """-> value, and consumes lines deeper than or at @indent."""
    out = None
    while lines:
        text = lines[0]
        depth = len(text) - len(text.lstrip())
        if depth < indent:
            break
        word = text.strip()
        if word == "-":
            lines.pop(0)
            out = out if out is not None else []
            out.append(parse(lines, depth + 1))
            continue
        key, _, value = word.partition(":")
        value = value.strip()
        lines.pop(0)
        out = out if out is not None else {}
        if value.startswith("["):
            out[key] = [v.strip() for v in value.strip("[]").split(",")]
        elif value:
            out[key] = value
        else:
            out[key] = parse(lines, depth + 1)
    return out


def spec():
    with open(SPEC) as f:
        lines = [x.rstrip("\n") for x in f]
    return parse([x for x in lines if x.strip() and not x.lstrip().startswith("#")])


def const(prefix, name):
    return (prefix + name).upper().replace("-", "_")


def header(s):
    o = ["/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */",
         "/*",
         " * Written by tests/vm/netlink_spec.py from uapi/hearth_netlink.yaml, which says",
         " * what each attribute means. Do not edit.",
         " */",
         "#ifndef _UAPI_LINUX_HEARTH_NETLINK_H",
         "#define _UAPI_LINUX_HEARTH_NETLINK_H",
         "",
         '#define HEARTH_FAMILY_NAME "%s"' % s["name"],
         "#define HEARTH_FAMILY_VERSION 1",
         ""]
    for a in s["attribute-sets"]:
        o.append("enum {")
        for i, attr in enumerate(a["attributes"]):
            o.append("\t%s%s," % (const(a["name-prefix"], attr["name"]), "" if i else " = 1"))
        o += ["", "\t__%s," % const(a["name-prefix"], "max"),
              "\t%s = (__%s - 1)" % ((const(a["name-prefix"], "max"),) * 2), "};", ""]
    o.append("enum {")
    ops = s["operations"]
    for i, op in enumerate(ops["list"]):
        o.append("\t%s%s," % (const(ops["name-prefix"], op["name"]), "" if i else " = 1"))
    o += ["", "\t__%s," % const(ops["name-prefix"], "max"),
          "\t%s = (__%s - 1)" % ((const(ops["name-prefix"], "max"),) * 2), "};", ""]
    for g in s["mcast-groups"]["list"]:
        o.append('#define HEARTH_MCGRP_%s "%s"' % (g["name"].upper(), g["name"]))
    o += ["", "#endif /* _UAPI_LINUX_HEARTH_NETLINK_H */", ""]
    return "\n".join(o)


NLA = {"u32": "NLA_U32", "u64": "NLA_U64", "string": "NLA_NUL_STRING"}


def check_policies(s, c):
    """Each request's attributes are in the policy of that set, and no others."""
    sets = {a["name"]: a for a in s["attribute-sets"]}
    bad = []
    for op in s["operations"]["list"]:
        if "do" not in op:
            continue
        a = sets[op["attribute-set"]]
        types = {x["name"]: x for x in a["attributes"]}
        want = {}
        for name in op["do"].get("request", {}).get("attributes", []):
            x = types[name]
            want[const(a["name-prefix"], name)] = (NLA[x["type"]], x.get("checks", {}).get("max-len"))
        m = re.search(r"%s_policy\[[^]]*\] = \{(.*?)\n\};" % a["name"], c, re.S)
        have = {}
        for line in re.finditer(r"\[(\w+)\] = \{ \.type = (\w+)(?:, \.len = (.*?))? \}",
                                m.group(1) if m else ""):
            length = line.group(3)
            have[line.group(1)] = (line.group(2),
                                   {"HEARTH_NAME_MAX - 1": "31"}.get(length, length))
        if want != have:
            bad.append("%s: spec %s, module %s" % (op["name"], want, have))
        if const(s["operations"]["name-prefix"], op["name"]) not in c:
            bad.append("%s is not in the module" % op["name"])
    return bad


def check_replies(s, c):
    """Each attribute of each set (but pads) is put somewhere in the module."""
    bad = []
    for a in s["attribute-sets"]:
        for x in a["attributes"]:
            name = const(a["name-prefix"], x["name"])
            if x["type"] == "pad":
                continue
            if not re.search(r"\b%s\b" % name, c):
                bad.append("%s is never sent" % name)
    return bad


def report(ok, name, why=()):
    print("%s - %s" % ("ok" if ok else "not ok", name))
    for w in why:
        print("# " + w)
    return ok


def main():
    s = spec()
    if "--write" in sys.argv:
        with open(HEADER, "w") as f:
            f.write(header(s))
        return 0
    with open(HEADER) as f:
        same = f.read() == header(s)
    with open(MODULE) as f:
        c = f.read()
    good = report(same, "the netlink header is what the spec says")
    bad = check_policies(s, c)
    good &= report(not bad, "policies are what the spec says", bad)
    bad = check_replies(s, c)
    good &= report(not bad, "every attribute of the spec is sent", bad)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
