package docker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
)

const found = `{"Id":"aaaaaaaaaaaaaaaa","Name":"/vllm-0","Image":"sha256:1","State":{"Running":true},
"Config":{"Hostname":"aaaaaaaaaaaa","Image":"vllm/vllm-openai:v0.32.0","Entrypoint":["vllm","serve"],"Cmd":["m","--max-num-seqs","4","--api-key","sk-abcdefghijklmnopqrstuvwxyz"],
"Env":["PATH=/bin","VLLM_LOGGING_LEVEL=INFO"],"Labels":{"team":"a"},"Future":{"b":[1,2.50]}},
"HostConfig":{"NetworkMode":"front","RestartPolicy":{"Name":"always","MaximumRetryCount":0},"Binds":["/models:/models:ro"],"Mounts":[{"Type":"volume","Target":"/cache"}],"DeviceRequests":[{"Count":-1,"Capabilities":[["gpu"]]}]},
"Mounts":[{"Type":"bind","Destination":"/models"},{"Type":"volume","Name":"v1","Destination":"/cache","RW":true},{"Type":"volume","Name":"v2","Destination":"/data","Mode":"z","RW":true}],
"NetworkSettings":{"Networks":{"front":{"IPAMConfig":{"IPv4Address":"172.30.0.9"},"Aliases":["llm","aaaaaaaaaaaa"],"IPAddress":"172.30.0.9","NetworkID":"n1"},"back":{"NetworkID":"n2"}}}}`

// TestAgain checks that a container is created again from all that Docker says of it, fields that rooftop
// does not know too.
func TestAgain(t *testing.T) {
	c, err := parse([]byte(found))
	must(t, err)
	request, further := c.again(c.Config.Image, []string{"vllm", "serve", "m", "--max-num-seqs", "8"}, c.Config.Env)
	got, err := json.Marshal(map[string]any{"request": request, "further": further})
	const want = `{"further":{"back":{}},"request":{"Cmd":["m","--max-num-seqs","8"],"Entrypoint":["vllm","serve"],"Env":["PATH=/bin","VLLM_LOGGING_LEVEL=INFO"],"Future":{"b":[1,2.50]},` +
		`"HostConfig":{"Binds":["/models:/models:ro","v2:/data:z"],"DeviceRequests":[{"Count":-1,"Capabilities":[["gpu"]]}],"Mounts":[{"Source":"v1","Target":"/cache","Type":"volume"}],"NetworkMode":"front","RestartPolicy":{"Name":"always","MaximumRetryCount":0}},` +
		`"Image":"vllm/vllm-openai:v0.32.0","Labels":{"dev.rooftop.replaces":"aaaaaaaaaaaaaaaa","team":"a"},"NetworkingConfig":{"EndpointsConfig":{"front":{"Aliases":["llm"],"IPAMConfig":{"IPv4Address":"172.30.0.9"}}}}}}`
	if err != nil || string(got) != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
	// Words of the entrypoint that change.
	if request, _ := c.again("i", []string{"/bin/serve", "m"}, nil); string(request["Entrypoint"])+string(request["Cmd"]) != `["/bin/serve","m"][]` {
		t.Errorf("%s %s", request["Entrypoint"], request["Cmd"])
	}
}

// fake is a Docker with names of containers that run or do not. It ends its answers after a number of
// requests that change something, as if rooftop had been killed.
type fake struct {
	all   map[string]*fakeContainer // by name
	left  int
	made  int
	fails string // action that fails
	late  int    // requests that do not find a container that is being created yet

	shares string // ID of the container whose network another one uses
}

type fakeContainer struct {
	container
	policy string
}

var errKilled = errors.New("killed")

func newFake() *fake {
	c, _ := parse([]byte(found))
	return &fake{all: map[string]*fakeContainer{"vllm-0": {*c, "always"}}, left: 1000}
}

func (f *fake) find(name string) (string, *fakeContainer) {
	for n, c := range f.all {
		if n == name || c.ID == name {
			return n, c
		}
	}
	return "", nil
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	code, answer := f.answer(r)
	if code == 0 {
		return nil, errKilled
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Api-Version": {"1.41"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

func (f *fake) answer(r *http.Request) (code int, text string) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1.41"), "/")
	if parts[1] == "_ping" {
		return 200, ""
	}
	if r.Method != http.MethodGet {
		if f.left--; f.left < 0 {
			return 0, ""
		}
	}
	if parts[len(parts)-1] == f.fails {
		return 500, `{"message":"it is on fire"}`
	}
	if parts[1] == "images" {
		return 200, `{"Id":"sha256:1"}`
	}
	name, c := f.find(parts[2])
	to := r.URL.Query().Get("name")
	switch {
	case parts[1] == "networks":
	case parts[2] == "json":
		return 200, `[{"Names":["/sidecar"],"HostConfig":{"NetworkMode":"container:` + f.shares + `"}}]`
	case parts[2] == "create":
		var made container
		text, _ := io.ReadAll(r.Body)
		if err := errors.Join(json.Unmarshal(text, &made.Config), json.Unmarshal(text, &made)); err != nil || f.all[to] != nil {
			return 409, ""
		}
		f.made++
		made.ID = fmt.Sprintf("trial%d", f.made)
		f.all[to] = &fakeContainer{made, made.HostConfig.RestartPolicy.Name}
		return 201, `{"Id":"` + made.ID + `"}`
	case c != nil && strings.HasSuffix(name, trialSuffix) && f.late > 0:
		f.late--
		return 404, `{"message":"no such container"}`
	case c == nil:
		return 404, `{"message":"no such container"}`
	case r.Method == http.MethodDelete && c.State.Running:
		return 409, ""
	case r.Method == http.MethodDelete:
		delete(f.all, name)
	case parts[3] == "start" || parts[3] == "stop":
		c.State.Running = parts[3] == "start"
	case parts[3] == "update":
		var asked struct{ RestartPolicy struct{ Name string } }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		c.policy = asked.RestartPolicy.Name
	case parts[3] == "rename" && f.all[to] != nil:
		return 409, ""
	case parts[3] == "rename":
		delete(f.all, name)
		f.all[to] = c
	case parts[3] == "json":
		c.Name = "/" + name
		var d document
		text, _ := json.Marshal(c.container)
		_ = json.Unmarshal(text, &d)
		var host document
		_ = json.Unmarshal(d["HostConfig"], &host)
		text, _ = json.Marshal(d.with("HostConfig", host.with("RestartPolicy", map[string]string{"Name": c.policy})))
		return 200, string(text)
	}
	return 204, ""
}

func (f *fake) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(f.all)) {
		c := f.all[name]
		words = append(words, fmt.Sprintf("%s=%s,%v,%s", name, c.ID, c.State.Running, c.policy))
	}
	return strings.Join(words, " ")
}

// by returns a container of the fake, as New does where it has been found.
func (f *fake) by(t *testing.T) *Container {
	t.Helper()
	was, err := parse([]byte(found))
	must(t, err)
	known := &launcher.Container{Name: "vllm-0"}
	c := Known(&launcher.Launch{Container: known}).(*Container)
	c.daemon.client.Transport = f
	c.was, c.kept = was, &launcher.Launch{Argv: slices.Concat(was.Config.Entrypoint, was.Config.Cmd), Env: was.Config.Env, Container: known}
	return c
}

var change = &manager.Change{All: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}}

const before = "vllm-0=aaaaaaaaaaaaaaaa,true,always"

// TestKilled kills rooftop after each request of a change, and after each of a revert, and has another one
// recover.
func TestKilled(t *testing.T) {
	usual := lateWithin
	lateWithin = 0
	t.Cleanup(func() { lateWithin = usual })
	recovered := func(f *fake) string {
		f.left = 1000
		c := f.by(t)
		c.was, c.kept = nil, nil
		if err := c.Make(t.Context(), &manager.Change{Revert: true}); err != nil {
			return err.Error()
		}
		return f.String()
	}
	requests := 0
	for ; ; requests++ {
		f := newFake()
		f.left = requests
		err := f.by(t).Make(t.Context(), change)
		if err == nil {
			break
		}
		state := f.String()
		if got := recovered(f); got != before {
			t.Errorf("killed after %d requests at %s: %s", requests, state, got)
		}
		if f := new(manager.UntouchedError); errors.As(err, &f) && !strings.Contains(state, before) {
			t.Errorf("after %d requests: %v, at %s", requests, err, state)
		}
	}
	if requests != 7 { // create, connect, stop, update, rename, rename, start
		t.Errorf("a change takes %d requests", requests)
	}
	for n := 0; ; n++ {
		f := newFake()
		must(t, f.by(t).Make(t.Context(), change))
		if want := "vllm-0=trial1,true,always vllm-0-rooftop-kept=aaaaaaaaaaaaaaaa,false,no"; f.String() != want {
			t.Fatalf("with a change: %s", f)
		}
		f.left = n
		err := f.by(t).Make(t.Context(), &manager.Change{Revert: true})
		state := f.String()
		if got := recovered(f); got != before {
			t.Errorf("killed after %d requests of a revert at %s: %s", n, state, got)
		}
		if err == nil {
			break
		}
	}
}

// TestAContainerThatComesLateIsRemoved has Docker still create the container of a change when another rooftop recovers.
func TestAContainerThatComesLateIsRemoved(t *testing.T) {
	f := newFake()
	f.left = 1
	if err := f.by(t).Make(t.Context(), change); err == nil {
		t.Fatal("it was not killed")
	}
	f.left, f.late = 1000, 3
	c := f.by(t)
	c.was, c.kept = nil, nil
	if err := c.Make(t.Context(), &manager.Change{Revert: true}); err != nil || f.String() != before {
		t.Errorf("%v: there is %s", err, f)
	}
}

// TestKeep keeps a change, and reverts the next one to it.
func TestKeep(t *testing.T) {
	f := newFake()
	c := f.by(t)
	for _, err := range []error{c.Make(t.Context(), change), c.Keep(t.Context()), c.Keep(t.Context())} {
		must(t, err)
	}
	const kept = "vllm-0=trial1,true,always"
	if f.String() != kept {
		t.Fatalf("kept: %s", f)
	}
	f.all["vllm-0"].Config.Labels["team"] = "b"
	next := &manager.Change{All: []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "16"}}}
	if err := errors.Join(c.Make(t.Context(), next), c.Make(t.Context(), &manager.Change{Revert: true})); err != nil || f.String() != kept {
		t.Errorf("%v: %s", err, f)
	}
}

// TestSomebodyElse checks that rooftop removes nothing that it did not make.
func TestSomebodyElse(t *testing.T) {
	f := newFake()
	c := f.by(t)
	must(t, c.Make(t.Context(), change))
	delete(f.all["vllm-0"].Config.Labels, trialLabel)
	was := f.String()
	for _, err := range []error{c.Make(t.Context(), &manager.Change{Revert: true}), c.Keep(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "someone else made the container vllm-0") || f.String() != was {
			t.Errorf("%v: %s", err, f)
		}
	}
}

// TestSomebodyRemovedTheKeptContainer leaves the container with the change, which is not what was kept.
func TestSomebodyRemovedTheKeptContainer(t *testing.T) {
	f := newFake()
	c := f.by(t)
	must(t, c.Make(t.Context(), change))
	delete(f.all, "vllm-0-rooftop-kept")
	was := f.String()
	if err := c.Make(t.Context(), &manager.Change{Revert: true}); err == nil || !strings.Contains(err.Error(), "someone removed it, and vllm-0 is another one") || f.String() != was {
		t.Errorf("%v: %s", err, f)
	}
}

// TestKeptContainerIsPruned has another rooftop recover after docker container prune: the container of the change is
// not taken for the previous one, which it is once it was kept.
func TestKeptContainerIsPruned(t *testing.T) {
	usual := lateWithin
	lateWithin = 0
	t.Cleanup(func() { lateWithin = usual })
	undo := &manager.Change{Revert: true, Changes: engine.InverseChanges(change.All), Command: manager.Command{After: "vllm serve m --max-num-seqs 4"}}
	recovers := func(f *fake) error {
		c := f.by(t)
		c.was, c.kept = nil, nil
		return c.Make(t.Context(), undo)
	}
	f := newFake()
	c := f.by(t)
	must(t, c.Make(t.Context(), change))
	delete(f.all, "vllm-0-rooftop-kept")
	was := f.String()
	if err := recovers(f); err == nil || !strings.HasPrefix(err.Error(), "the container before the change is gone, ") || !strings.HasSuffix(err.Error(), "docker inspect vllm-0 shows it, but with --max-num-seqs 8 → 4") || f.String() != was {
		t.Errorf("%v: %s", err, f)
	}
	delete(f.all, "vllm-0")
	if err := recovers(f); err == nil || !strings.HasPrefix(err.Error(), "the container vllm-0 is gone, ") || !strings.HasSuffix(err.Error(), "run it again as before, with vllm serve m --max-num-seqs 4") {
		t.Errorf("%v: %s", err, f)
	}

	f = newFake()
	if c = f.by(t); errors.Join(c.Make(t.Context(), change), c.Keep(t.Context())) != nil {
		t.Fatal(f)
	}
	next := []engine.Change{{Flag: "--max-num-seqs", From: "8", To: "16"}}
	undo = &manager.Change{Revert: true, Changes: engine.InverseChanges(next)} // which was not begun
	if err := recovers(f); err != nil || f.String() != "vllm-0=trial1,true,always" {
		t.Errorf("%v: %s", err, f)
	}
}

// TestUntouched checks that what Docker refuses before a stop leaves the server alone.
func TestUntouched(t *testing.T) {
	for _, action := range []string{"create", "connect"} {
		f := newFake()
		f.fails = action
		err := f.by(t).Make(t.Context(), change)
		var untouched *manager.UntouchedError
		if !errors.As(err, &untouched) || !strings.Contains(err.Error(), "it is on fire") || f.String() != before {
			t.Errorf("%s: %v: %s", action, err, f)
		}
	}
}

func TestStepsOfAContainer(t *testing.T) {
	c := newFake().by(t)
	steps := strings.Join(c.Steps(change), "\n")
	if !strings.Contains(steps, "starts vllm serve m --max-num-seqs 8") || strings.Contains(steps, "sk-abc") {
		t.Error(steps)
	}
}

// TestRefused checks the sentences about containers that are left alone.
func TestRefused(t *testing.T) {
	for edit, want := range map[string]string{
		`"team":"a"`:                            "",
		`"com.docker.swarm.service.name":"llm"`: "docker service update",
		`"io.kubernetes.pod.name":"vllm-7d9","io.kubernetes.pod.namespace":"inference"`: "the pod inference/vllm-7d9",
	} {
		was, err := parse([]byte(strings.Replace(found, `"team":"a"`, edit, 1)))
		must(t, err)
		if refused := newFake().by(t).changeable(t.Context(), was); (refused != nil) != (want != "") || want != "" && !strings.Contains(refused.Error(), want) {
			t.Errorf("%s: %v", edit, refused)
		}
	}
	was, _ := parse([]byte(strings.Replace(found, `"NetworkMode"`, `"AutoRemove":true,"NetworkMode"`, 1)))
	if err := newFake().by(t).changeable(t.Context(), was); err == nil || !strings.Contains(err.Error(), "--rm") {
		t.Error(err)
	}
	f := newFake()
	f.shares = was.ID
	was, _ = parse([]byte(found))
	if err := f.by(t).changeable(t.Context(), was); err == nil || !strings.Contains(err.Error(), "sidecar uses the network of vllm-0") {
		t.Error(err)
	}
}

// frame returns output as Docker sends it.
func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(text))), text...)
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(found))
	f.Add(append(frame("a\n"), frame("b")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text := unframed(data); len(text) > len(data) {
			t.Errorf("%q from %q", text, data)
		}
		if c, err := parse(data); err == nil {
			c.again("i", []string{"a"}, nil)
		}
		if got := unframed(append(frame(string(data)), frame("b")...)); !bytes.Equal(got, append(bytes.Clone(data), 'b')) {
			t.Errorf("%q from %q", got, data)
		}
	})
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
