package launch

import (
	"strings"
	"testing"
)

func TestReasonIn(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"empty", "", ""},
		{"arguments", "usage: vllm serve [model_tag] [options]\nvllm serve: error: unrecognized arguments: --foo 3\n", "vllm serve: error: unrecognized arguments: --foo 3"},
		{"argument's type", "api_server.py: error: argument --max-num-seqs: invalid int value: 'x'\n", "api_server.py: error: argument --max-num-seqs: invalid int value: 'x'"},
		{
			"engine core", `(EngineCore_DP0 pid=4242) INFO 11-21 10:00:00 [gpu_model_runner.py:2338] Starting to load model
(EngineCore_DP0 pid=4242) ERROR 11-21 10:00:09 [core.py:700] EngineCore failed to start.
(EngineCore_DP0 pid=4242) ERROR 11-21 10:00:09 [core.py:700] Traceback (most recent call last):
(EngineCore_DP0 pid=4242) ERROR 11-21 10:00:09 [core.py:700]   File "/x/vllm/v1/engine/core.py", line 691, in run_engine_core
(EngineCore_DP0 pid=4242) ERROR 11-21 10:00:09 [core.py:700]     raise ValueError(
(EngineCore_DP0 pid=4242) ERROR 11-21 10:00:09 [core.py:700] ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (3.42 GiB).
(EngineCore_DP0 pid=4242) Process EngineCore_DP0:
(EngineCore_DP0 pid=4242) Traceback (most recent call last):
(APIServer pid=4200) Traceback (most recent call last):
(APIServer pid=4200)   File "/x/vllm/entrypoints/openai/api_server.py", line 1, in main
(APIServer pid=4200) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
[rank0]:[W1121] Warning: WARNING: destroy_process_group() was not called
`, "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (3.42 GiB).",
		},
		{
			"pydantic", `Traceback (most recent call last):
pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig
  Value error, max_num_batched_tokens (512) is smaller than max_model_len (2048). [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]
    For further information visit https://errors.pydantic.dev/2.11/v/value_error
`, "Value error, max_num_batched_tokens (512) is smaller than max_model_len (2048). [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]",
		},
		{"memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\nRuntimeError: cancelled\n", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."},
		{"port", "INFO:     Shutting down\nOSError: [Errno 98] Address already in use\n", "OSError: [Errno 98] Address already in use"},
		{"module", "/usr/bin/python3: No module named vllm\n", "/usr/bin/python3: No module named vllm"},
		{"colours", "\x1b[31mValueError: bad\x1b[0m\r\n\x1b]0;title\x07 done\n", "ValueError: bad"},
		{"last exception", "KeyError: 'a'\nDuring handling of the above exception, another exception occurred:\nTypeError: b\n", "TypeError: b"},
		{"only a generic one", "RuntimeError: Engine core initialization failed. See root cause above.\nshutting down\n", "RuntimeError: Engine core initialization failed. See root cause above."},
		{"only text", "starting\nbye\n\n", "bye"},
		{"system", "./run.sh: line 3: 4242 Killed vllm serve m\nstopped\n", "./run.sh: line 3: 4242 Killed vllm serve m"},
	} {
		if got := FailureReason([]byte(c.log)); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
	}
	if got := FailureReason([]byte("ValueError: " + strings.Repeat("é", 1000))); len([]rune(got)) != maxReasonRunes+1 {
		t.Errorf("a long line has %d characters", len([]rune(got)))
	}
}

func FuzzReasonIn(f *testing.F) {
	f.Add([]byte("ValueError: x\n"))
	f.Add([]byte("(a pid=1) ERROR 11-21 10:00:00 [x]\xff\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		got := FailureReason(log)
		if strings.ContainsAny(got, "\n\r\x1b") || len([]rune(got)) > maxReasonRunes+1 {
			t.Errorf("reason %q", got)
		}
	})
}
