"""Serves a GGUF model with llama.cpp's own HTTP server, on 127.0.0.1 without HOST.

    python serve-llamacpp.py MODEL [HOST:]PORT [SLOTS [THREADS]]

The server is the C++ one (tools/server of llama.cpp) inside this process: its
routes, its streams and, as with --metrics, its /metrics. TERM ends it.
"""

import signal
import sys

import xllamacpp

model, at = sys.argv[1:3]
host, _, port = at.rpartition(":")
slots, threads = [*sys.argv[3:], *("4", "2")[len(sys.argv) - 3 :]]
params = xllamacpp.CommonParams()
params.model.path = model
params.hostnames = [host or "127.0.0.1"]
params.port = int(port)
params.n_parallel = int(slots)
params.n_ctx = 2048 * params.n_parallel  # divided among the slots
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
params.model_alias = {"random"}
params.endpoint_metrics = True
# Nothing is kept of a prompt, so that repeats cost what the first cost.
params.cache_prompt = False
params.cache_ram_mib = 0

server = xllamacpp.Server(params)
print("serves on", server.listening_address, flush=True)
signal.pause()
