package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/engine"
)

func TestChangesStayWhereTheFlagsStand(t *testing.T) {
	slots := engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}
	for name, c := range map[string]struct {
		container string
		change    engine.Change
		want      string // command, args and env
	}{
		"arguments of an image":     {`{"args":["--model","m","--max-num-seqs","4"]}`, slots, `null ["--model","m","--max-num-seqs","32"] null`},
		"added to them":             {`{"args":["--model","m"]}`, slots, `null ["--model","m","--max-num-seqs","32"] null`},
		"a command with all":        {`{"command":["vllm","serve","m","--max-num-seqs=4","--port","80"]}`, slots, `["vllm","serve","m","--max-num-seqs=32","--port","80"] null null`},
		"behind a command":          {`{"command":["vllm","serve","m"]}`, slots, `["vllm","serve","m"] ["--max-num-seqs","32"] null`},
		"in the command of two":     {`{"command":["vllm","serve","m","--max-num-seqs","4"],"args":["--port","80"]}`, slots, `["vllm","serve","m","--max-num-seqs","32"] ["--port","80"] null`},
		"a script":                  {`{"command":["/bin/sh","-c"],"args":["ulimit -n 9; exec vllm serve m --max-num-seqs 4 --port 80"]}`, slots, `["/bin/sh","-c"] ["ulimit -n 9; exec vllm serve m --max-num-seqs 32 --port 80"] null`},
		"a variable":                {`{"args":["--model","m"],"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"VLLM_CPU_KVCACHE_SPACE","value":"4"}]}`, engine.Change{Flag: "VLLM_CPU_KVCACHE_SPACE", From: "4", To: "8"}, `null ["--model","m"] [{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},{"name":"VLLM_CPU_KVCACHE_SPACE","value":"8"}]`},
		"a variable that was not":   {`{"args":["--model","m"]}`, engine.Change{Flag: "VLLM_CPU_KVCACHE_SPACE", From: "", To: "8"}, `null ["--model","m"] [{"name":"VLLM_CPU_KVCACHE_SPACE","value":"8"}]`},
		"a variable that goes away": {`{"args":["--model","m"],"env":[{"name":"VLLM_CPU_KVCACHE_SPACE","value":"4"}]}`, engine.Change{Flag: "VLLM_CPU_KVCACHE_SPACE", From: "4", To: ""}, `null ["--model","m"] null`},
	} {
		var container kube.Container
		must(t, json.Unmarshal([]byte(c.container), &container))
		from, was := settingsOf(&container), container.Launch()
		target, err := was.With([]engine.Change{c.change}, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := from.with(was, target)
		if text := strings.Join([]string{string(orNull(got.Command)), string(orNull(got.Args)), string(orNull(got.Env))}, " "); err != nil || text != c.want {
			t.Errorf("%s: %s, %v\nwant %s", name, text, err, c.want)
		}
	}
}

func TestPatchesTestWhatTheyReplace(t *testing.T) {
	from := settings{Args: json.RawMessage(`["a"]`)}
	to := settings{Command: json.RawMessage(`["x"]`), Env: json.RawMessage(`["e"]`)}
	const at = "/spec/containers/2/"
	for name, c := range map[string]struct {
		got  []kube.Operation
		want string
	}{
		"there": {replace("/spec/containers/2", &from, &to), `[{"op":"test","path":"` + at + `command","value":null},{"op":"add","path":"` + at + `command","value":["x"]},` +
			`{"op":"test","path":"` + at + `args","value":["a"]},{"op":"remove","path":"` + at + `args"},{"op":"test","path":"` + at + `env","value":null},{"op":"add","path":"` + at + `env","value":["e"]}]`},
		"nothing": {replace("/spec/containers/2", &from, &from), `[{"op":"test","path":"` + at + `command","value":null},{"op":"test","path":"` + at + `args","value":["a"]},{"op":"test","path":"` + at + `env","value":null}]`},
	} {
		if text := string(marshal(c.got)); text != c.want {
			t.Errorf("%s: %s\nwant %s", name, text, c.want)
		}
	}
}

func TestWhatIsOnTrialIsReadBack(t *testing.T) {
	on := trial{run: run{ID: "node-1", Machine: "node", Process: 7}, Container: "vllm", From: settings{Args: json.RawMessage(`["<&>"]`)}, To: settings{Args: json.RawMessage(`["b"]`)}}
	var o kube.Object
	steps := on.note(&o)
	var text string
	must(t, json.Unmarshal(steps[len(steps)-1].Value, &text))
	o.Metadata.Annotations = map[string]string{annotation: text}
	got, err := trialOf(&o)
	if err != nil || !got.From.equal(&on.From) || !got.To.equal(&on.To) || got.ID != on.ID {
		t.Errorf("%+v, %v", got, err)
	}
	if string(steps[1].Value) != "{}" {
		t.Error("an object without annotations gets none")
	}
	o.Metadata.Annotations[annotation] = "{"
	if _, err := trialOf(&o); err == nil {
		t.Error("an annotation that is no JSON was read")
	}
}

// TestChangesThatAreOver: what kubectl rollout undo brings back has the template of the change and a later revision; a
// template that was changed elsewhere, as by kubectl rollout restart, has the change as long as its arguments stand there.
func TestChangesThatAreOver(t *testing.T) {
	template := func(args, about string) *kube.Object {
		o := new(kube.Object)
		text := `{"spec":{"template":{"metadata":{"annotations":{` + about + `}},"spec":{"containers":[{"name":"proxy","args":["p"]},{"name":"vllm","args":["` + args + `"]}]}}}}`
		must(t, json.Unmarshal([]byte(text), o))
		return o
	}
	const restarted = `"kubectl.kubernetes.io/restartedAt":"2026-11-28T00:00:00Z"`
	on := trial{
		Container: "vllm", Revision: "3", Rest: restOf(template("4", ""), "vllm"),
		From: settings{Args: json.RawMessage(`["4"]`)}, To: settings{Args: json.RawMessage(`["8"]`)},
	}
	for name, c := range map[string]struct {
		now  *kube.Object
		at   string // revision
		want bool
	}{
		"not rolled out":        {template("8", ""), "3", false},
		"on trial":              {template("8", ""), "4", false},
		"restarted":             {template("8", restarted), "5", false},
		"restarted twice":       {template("8", restarted), "6", false},
		"brought back":          {template("8", ""), "6", true},
		"replaced":              {template("16", ""), "5", true},
		"without any revision":  {template("8", ""), "", false},
		"without the container": {new(kube.Object), "6", true},
	} {
		c.now.Metadata.Annotations = map[string]string{revision: c.at}
		if got := on.over(c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
