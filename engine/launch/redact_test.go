package launch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestRedacts(t *testing.T) {
	tests := []struct {
		name, argv, config string
		env                map[string]string
		want               string // the whole redacted line
	}{
		{"api key", "vllm serve M --api-key abc def --port 1", "", nil, "vllm serve M --api-key [redacted] [redacted] --port 1"},
		{"api key with an equals sign", "vllm serve M --api-key=a1 --port 1", "", nil, "vllm serve M --api-key=[redacted] --port 1"},
		{"a second key behind an equals sign", "vllm serve M --api-key=a1 b2 --port 1", "", nil, "vllm serve M --api-key=[redacted] [redacted] --port 1"},
		{"token", "vllm serve M --hf_token hf_x", "", nil, "vllm serve M --hf_token [redacted]"},
		{"key file and password", "vllm serve M --ssl-keyfile /k.pem --ssl-keyfile-password pw", "", nil, "vllm serve M --ssl-keyfile [redacted] --ssl-keyfile-password [redacted]"},
		{"unknown flags", "vllm serve M --my-secret a --admin-token=b --db-passwd c", "", nil, "vllm serve M --my-secret [redacted] --admin-token=[redacted] --db-passwd [redacted]"},
		{"counts of tokens stay", "vllm serve M --max-num-batched-tokens 8192 --spec-tokens 3 --long-prefill-token-threshold 5 --tokenizer t --tokens-only --enable-prompt-tokens-details", "", nil,
			"vllm serve M --max-num-batched-tokens 8192 --spec-tokens 3 --long-prefill-token-threshold 5 --tokenizer t --tokens-only --enable-prompt-tokens-details"},
		{"key in JSON", `vllm serve M --kv-transfer-config {"a":{"api_key":"zzz"},"num_speculative_tokens":3}`, "", nil, `vllm serve M --kv-transfer-config '{"a":{"api_key":"[redacted]"},"num_speculative_tokens":3}'`},
		{"keys in JSON", `vllm serve M --additional-config {"api_keys":["a","b"],"password":{"of":"c"},"stop_tokens":["1",2],"n":["d"]}`, "", nil,
			`vllm serve M --additional-config '{"api_keys":["[redacted]","[redacted]"],"n":["d"],"password":{"of":"[redacted]"},"stop_tokens":["1",2]}'`},
		{"JSON behind an equals sign", `vllm serve M --additional-config={"token":"zzz"}`, "", nil, `vllm serve M '--additional-config={"token":"[redacted]"}'`},
		{"sub-key", "vllm serve M --kv-transfer-config.password=zzz --additional-config.auth_token zzz", "", nil, "vllm serve M --kv-transfer-config.password=[redacted] --additional-config.auth_token [redacted]"},
		{"user part of a URL", "vllm serve s3://key:secret@bucket/m --otlp-traces-endpoint http://u:p@h:4317?token=zz", "", nil, "vllm serve s3://[redacted]@bucket/m --otlp-traces-endpoint 'http://[redacted]@h:4317?token=[redacted]'"},
		{"password with delimiters of a URL", "vllm serve M --a http://u:pa/ss@h --b http://u:p@ss@h:1/x --c http://h:8000/v1 --d http://h:1/v?q=a@b", "", nil,
			"vllm serve M --a http://[redacted]@h --b http://[redacted]@h:1/x --c http://h:8000/v1 --d 'http://h:1/v?q=a@b'"},
		{"short names", `vllm serve M --a {"auth":"x","pass":"y","pwd":"z","pass_config":"w"} --b http://h/?auth=x&db_pwd=y&author=z --db-pass q`, "", nil,
			`vllm serve M --a '{"auth":"[redacted]","pass":"[redacted]","pass_config":"w","pwd":"[redacted]"}' --b 'http://h/?auth=[redacted]&db_pwd=[redacted]&author=z' --db-pass [redacted]`},
		{"headers", "vllm serve M --a Authorization:·x --b Authorization:·Token·x --c Cookie:·x=y", "", nil,
			"vllm serve M --a 'Authorization: [redacted]' --b 'Authorization: [redacted]' --c 'Cookie: [redacted]'"},
		{"short variables", "env DB_PASS=x REDIS_PWD=y COOKIE=z PWD=/srv vllm serve M", "", nil, "env DB_PASS=[redacted] REDIS_PWD=[redacted] COOKIE=[redacted] PWD=/srv vllm serve M"},
		{"variables on the line", "env HF_TOKEN=zz VLLM_API_KEY=yy vllm serve M", "", nil, "env HF_TOKEN=[redacted] VLLM_API_KEY=[redacted] vllm serve M"},
		{"container variables", "docker run -e HF_TOKEN=zz --env=VLLM_API_KEY=yy -eAWS_SECRET_ACCESS_KEY=xx --env A=1 vllm/vllm-openai:latest --model M", "", nil,
			"docker run -e HF_TOKEN=[redacted] --env=VLLM_API_KEY=[redacted] -eAWS_SECRET_ACCESS_KEY=[redacted] --env A=1 vllm/vllm-openai:latest --model M"},
		{"script", "sh -c export·HF_TOKEN=zz;·VLLM_API_KEY='y·y'·vllm·serve·M·--api-key·q·>·log", "", nil, `sh -c 'export HF_TOKEN=[redacted]; VLLM_API_KEY=[redacted] vllm serve M --api-key [redacted] > log'`},
		{"a secret of the environment elsewhere", "vllm serve M --middleware mod.f:longsecret1", "", map[string]string{"VLLM_API_KEY": "longsecret1"}, "vllm serve M --middleware mod.f:[redacted]"},
		{"shape of a token", "vllm serve M --foo hf_abcdefghijklmnopqrstuvwxyz012345", "", nil, "vllm serve M --foo [redacted]"},
		{"harmless names", "vllm serve M --hf_overrides {} --hf-config-path /p --kv-cache-dtype fp8", "", nil, "vllm serve M --hf_overrides '{}' --hf-config-path /p --kv-cache-dtype fp8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse(argv(tt.argv), tt.env, []byte(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			if got := c.String(); got != tt.want {
				t.Errorf("redacted line:\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestNoFormatShowsASecret prints a configuration in every way that a log line
// or a careless %v might.
func TestNoFormatShowsASecret(t *testing.T) {
	secrets := []string{"cmdlinesecret", "second1", "hf_x", "filesecret", "envsecret", "jsonsecret"}
	c, err := Parse(
		[]string{"vllm", "serve", "M", "--api-key", "cmdlinesecret", "second1", "--config", "c.yaml", "--additional-config", `{"password":"jsonsecret"}`},
		map[string]string{"HF_TOKEN": "hf_x", "VLLM_API_KEY": "envsecret"},
		[]byte("hf-token: filesecret\nport: 8000\n"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"String": c.String(), "Redacted": strings.Join(c.Redacted(), " "), "Notes": strings.Join(c.Notes(), " "), "Diff": fmt.Sprint(Diff(c, c.Without("api_key")))}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts[verb] = fmt.Sprintf(verb, c)
		texts[verb+" of the value"] = fmt.Sprintf(verb, *c)
		texts[verb+" within a struct"] = fmt.Sprintf(verb, struct{ C *Config }{c})
	}
	for _, name := range c.items.names() {
		value, _, _ := c.Value(name)
		values, _, _ := c.Values(name)
		texts[name] = value + fmt.Sprint(values)
	}
	for _, name := range []string{"HF_TOKEN", "VLLM_API_KEY"} {
		texts[name], _ = c.Variable(name)
	}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	texts["JSON"] = string(encoded)
	for how, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q: %s", how, secret, text)
			}
		}
	}
	// What a restart needs is still there.
	if !strings.Contains(c.Shell(), "cmdlinesecret") || !strings.Contains(string(c.File()), "filesecret") {
		t.Error("the exact command line or file is lost")
	}
}

func TestSecretVariable(t *testing.T) {
	for _, name := range []string{"VLLM_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "OPENAI_API_KEYS", "BASIC_AUTH", "DB_PASS", "REDIS_PWD", "COOKIE", "SESSION_COOKIE"} {
		if !secretVariable(name) {
			t.Errorf("%s is taken for no secret", name)
		}
	}
	for _, name := range []string{"VLLM_USE_V1", "CUDA_VISIBLE_DEVICES", "VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE", "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD", "HF_HOME", "VLLM_CPU_KVCACHE_SPACE", "PWD", "OLDPWD"} {
		if secretVariable(name) {
			t.Errorf("%s is taken for a secret", name)
		}
	}
}
