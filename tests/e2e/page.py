#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The web page in headless Chromium, driven over its debugging protocol: a
typed turn, a spoken turn from a fake microphone, memory and waterfall, keys,
and that it asks nobody but its own server. Standard library only; prints TAP."""
import atexit
import base64
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import wave

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hearthd as t
from hearthd import KEY, ROOT, Daemon, WebSocket, call, check
from realtime import command

HOME = os.path.join(ROOT, "docs/examples/home.yaml")
CONF = f"""model: {{path: {{model}}, id: home, context: 4096, sessions: 4, threads: 2}}
http: {{host: 127.0.0.1, port: 0}}
speech: {{stt: true, tts: true, cache: {{dir}}, home: {HOME}}}
KEYS
"""
SHOTS = os.path.join(t.BUILD, "log")


class Browser:
    def __init__(self, exe, wav, where):
        self.dir = where
        os.makedirs(where)
        self.log = open(os.path.join(where, "chromium.log"), "w+")
        self.proc = subprocess.Popen([exe, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                                      "--disable-component-update", "--disable-sync", "--mute-audio", "--remote-debugging-port=0", "--user-data-dir=" + where,
                                      "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={wav}%noloop",
                                      "--autoplay-policy=no-user-gesture-required", "--window-size=1280,860", "about:blank"], stdout=subprocess.DEVNULL, stderr=self.log)
        atexit.register(self.proc.kill)
        port = os.path.join(where, "DevToolsActivePort")
        deadline = time.time() + 60
        while not os.path.exists(port) or not open(port).read().strip():
            if time.time() > deadline or self.proc.poll() is not None:
                raise RuntimeError("chromium did not start: " + open(self.log.name).read()[-600:])
            time.sleep(0.1)
        self.port = int(open(port).read().split()[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json/list", timeout=30) as r:
            url = [p for p in json.load(r) if p["type"] == "page"][0]["webSocketDebuggerUrl"]
        self.ws = WebSocket(self.port, url[url.index("/devtools"):], key=None)
        self.n, self.events = 0, []
        for d in ("Page", "Runtime", "Log", "Network"):
            self.cmd(d + ".enable")

    def cmd(self, method, **params):
        self.n += 1
        self.ws.send({"id": self.n, "method": method, "params": params})
        while True:
            m = self.ws.read()
            if m is None:
                raise RuntimeError("chromium went away")
            if isinstance(m, tuple):
                raise RuntimeError(f"a frame of chromium's that is no text: {m[0]} {m[1][:200]}")
            if m.get("id") == self.n:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']}")
                return m.get("result", {})
            self.events.append(m)

    def eval(self, js):
        r = self.cmd("Runtime.evaluate", expression=js, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in r:
            raise RuntimeError(js + ": " + json.dumps(r["exceptionDetails"])[:400])
        return r["result"].get("value")

    def wait(self, js, seconds=90):
        deadline = time.time() + seconds
        while not (v := self.eval(js)):
            if time.time() > deadline:
                return v
            time.sleep(0.15)
        return v

    def shot(self, name, width=1280, height=860, scheme="dark"):
        self.cmd("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.cmd("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        time.sleep(0.4)
        os.makedirs(SHOTS, exist_ok=True)
        with open(os.path.join(SHOTS, name), "wb") as f:
            f.write(base64.b64decode(self.cmd("Page.captureScreenshot")["data"]))

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"] + \
               [e["params"]["url"] for e in self.events if e["method"] == "Network.webSocketCreated"]

    def told(self):
        """What the page has told the session, in order: (role, text) of each item, and the type of what else it sent."""
        out = []
        for e in self.events:
            if e["method"] == "Network.webSocketFrameSent":
                m = json.loads(e["params"]["response"]["payloadData"])
                item = m.get("item", {})
                out.append((item["role"], item["content"][0]["text"]) if item.get("type") == "message" else (m["type"], ""))
        return out

    def complaints(self):
        """Errors, also of the content security policy; a status of the API is not one."""
        out = [e["params"]["entry"]["text"] for e in self.events if e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"]
        out += [json.dumps(e["params"])[:300] for e in self.events if e["method"] == "Runtime.exceptionThrown"]
        return [c for c in out if "status of 401" not in c and "status of 404" not in c]

    def close(self):
        try:
            self.cmd("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.proc.wait(20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()


def microphone(d, path):
    """A WAV: a second of nothing, the command, and quiet after it."""
    pcm = command(lambda *a: call(d, *a))
    with wave.open(path, "wb") as f:
        f.setparams((1, 2, 24000, 0, "NONE", ""))
        f.writeframes(bytes(48000) + pcm + bytes(24000 * 2 * 20))


def turns(exe, tmp):
    d = Daemon(text=CONF.replace("KEYS", ""))
    wav = os.path.join(tmp, "mic.wav")
    microphone(d, wav)
    b = Browser(exe, wav, os.path.join(tmp, "profile"))
    base = f"http://127.0.0.1:{d.port}/"
    b.cmd("Page.navigate", url=base)
    check(b.wait("document.querySelectorAll('.tenant').length > 2"), "the tenants' memory is drawn", b.complaints())
    check(b.eval("document.getElementById('health').textContent").endswith("of 4 sessions") and b.eval("document.getElementById('model').textContent") == "home", "health and model are shown")
    check(b.wait("document.querySelectorAll('.dev').length") == 18, "the home's devices are shown")
    b.shot("page-start.png")
    before = b.eval("[...document.querySelectorAll('.tenant .n')].map(e => e.textContent).join()")
    b.eval("text.value = 'turn on the kitchen light'; send.click()")
    check(b.wait("document.querySelector('.call b')?.textContent.startsWith('Hass')"), "a typed command becomes a tool call that is shown", b.eval("log.innerText"))
    check(b.wait("document.querySelector('.call code')?.textContent.includes('success')"), "and what it did", b.eval("log.innerText"))
    check(b.wait("[...document.querySelectorAll('.me')].some(e => e.textContent.trim())"), "and an answer", b.eval("log.innerText"))
    check(b.eval("[...document.querySelectorAll('.dev')].find(e => e.textContent.startsWith('Kitchen Light'))?.className") == "dev on", "the light is on in the picture of the home")
    check(b.wait("document.getElementById('state').textContent === 'ready'"), "and then it is ready", b.eval("state.textContent"))
    b.eval("document.getElementById('mic').click()")
    check(b.wait("document.getElementById('mic').getAttribute('aria-pressed') === 'true'", 30), "the microphone opens", b.eval("log.innerText"))
    check(b.wait("[...document.querySelectorAll('.you')].length > 1 && /kitchen/.test([...document.querySelectorAll('.you')].at(-1).textContent)"),
          "what is spoken is read", b.eval("log.innerText + state.textContent"))
    check(b.wait("[...document.querySelectorAll('.me')].length > 1 && [...document.querySelectorAll('.row')].some(e => e.textContent.startsWith('speaking'))"),
          "it is answered in sound", b.eval("log.innerText + state.textContent + waterfall.innerText"))
    rows = b.eval("[...document.querySelectorAll('.row')].map(e => e.innerText.split('\\n'))")
    names = [r[0] for r in rows]
    check({"you spoke", "is that all?", "understanding", "first words", "speaking"} <= set(names), "the waterfall has the turn's stages", rows)
    print("# the page's waterfall: " + ", ".join(f"{r[0]} {r[-1]}" for r in rows))
    print("# " + b.eval("total.textContent"))
    b.shot("page-turn.png")
    b.shot("page-light.png", scheme="light")
    b.shot("page-narrow.png", 420, 900)
    check(b.eval("document.documentElement.scrollWidth <= innerWidth"), "on a telephone nothing runs out of the page")
    b.shot("page-turn.png")
    b.eval("document.getElementById('mic').click()")
    check(b.eval("document.getElementById('mic').getAttribute('aria-pressed')") == "false", "the microphone closes")
    check(b.wait(f"[...document.querySelectorAll('.tenant .n')].map(e => e.textContent).join() !== {json.dumps(before)}", 5) is not None, "memory goes on being drawn")
    # what changed since it was told is told before what is said, and once
    first = next(x for r, x in b.told() if r == "system")
    check(first.startswith("Now: ") and "Kitchen Light = off" in first, "the session begins with the home as it is", first)
    now = [x for r, x in b.told() if r == "system"][1:]
    check(any("Kitchen Light = on" in x for x in now), "what a call changed is told before what is spoken next", now)
    check(call(d, "POST", "/v1/home/call", {"name": "HassTurnOff", "arguments": {"name": "Wall Lamp"}}, key=None)[0] == 200, "somebody else switches a lamp")
    had = b.eval("document.querySelectorAll('.me').length")
    b.eval("text.value = 'is the wall lamp on'; send.click()")
    check(b.wait(f"document.querySelectorAll('.me').length > {had} && state.textContent === 'ready'"), "it is asked about", b.eval("log.innerText"))
    told = [x for x in b.told() if x[0] in ("system", "user")]
    check(told[-1] == ("user", "is the wall lamp on") and told[-2][0] == "system" and told[-2][1].startswith("Now: ") and "Wall Lamp = off" in told[-2][1] and "Kitchen Light" not in told[-2][1],
          "the page tells it, and only it, before the question", told[-3:])
    check("off" in (said := b.eval("[...document.querySelectorAll('.me')].at(-1).textContent").lower()) or "no" in said, "and the answer knows", said)
    check(b.eval("[...document.querySelectorAll('.dev')].find(e => e.textContent.startsWith('Wall Lamp'))?.className") == "dev", "as the picture of the home does")
    outside = [u for u in b.requests() if not u.startswith((base, base.replace("http", "ws"), "about:", "data:", "blob:"))]
    check(b.requests() and not outside, "it asks nobody but its own server", outside)
    check(not b.complaints(), "nothing breaks its content security policy, nothing throws", b.complaints())
    r = b.eval("new Promise(r => { const s = document.createElement('script'); s.textContent = 'window.evil = 1'; document.body.append(s); setTimeout(() => r(window.evil ?? 0), 100); })")
    check(r == 0, "a script that is written into it does not run")
    check(d.stop() == 0, "the server stops while a page is open", d.text()[-400:])
    check(b.wait("document.getElementById('health').className === 'pill gone'", 20), "and the page says that it is gone")
    b.close()


def with_key(exe, tmp):
    d = Daemon(text=CONF.replace("KEYS", f"keys: [{{name: me, key: {KEY}, priority: voice}}]"))
    b = Browser(exe, "/dev/null", os.path.join(tmp, "profile2"))
    b.cmd("Page.navigate", url=f"http://127.0.0.1:{d.port}/")
    check(b.wait("document.getElementById('ask')?.open"), "where keys are wanted it asks for one")
    b.eval(f"key.value = '{KEY}'; document.querySelector('#ask button').click()")
    check(b.wait("document.querySelectorAll('.tenant').length > 2"), "and with it everything is there", b.eval("document.body.innerText"))
    b.eval("text.value = 'turn off the hall light'; send.click()")
    check(b.wait("document.querySelector('.call, .me') !== null"), "the realtime session takes the key too", b.eval("log.innerText"))
    b.close()
    d.stop()


def main():
    exe = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if exe and subprocess.run([exe, "--version"], capture_output=True).returncode:
        exe = None                             # Ubuntu's package is a snap, which need not run here
    if not os.path.exists(t.MODEL) or not exe:
        print("1..1\nok 1 - page # SKIP " + ("there is no model" if exe else "there is no chromium that runs"))
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as tmp:
        for fn in (turns, with_key):
            try:
                fn(exe, tmp)
            except Exception:
                import traceback
                check(False, fn.__name__, traceback.format_exc())
    print("1..%d" % t.count)
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
