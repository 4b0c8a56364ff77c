package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// measureArguments say what to measure. Facts that cannot be read can be given, as to the command.
type measureArguments struct {
	Server     string  `json:"server,omitempty" jsonschema:"URL of the server, as list_servers gives it; without it the only one of this machine"`
	Duration   float64 `json:"duration_s,omitempty" jsonschema:"seconds to measure, 8 to 3600"`
	MaxNumSeqs int     `json:"max_num_seqs,omitempty" jsonschema:"the server's own --max-num-seqs, if its launch cannot be read"`
	TP         int     `json:"tensor_parallel_size,omitempty" jsonschema:"the server's own tensor-parallel degree, if its launch cannot be read"`
	GPU        string  `json:"gpu,omitempty" jsonschema:"name of the GPU, such as H100 SXM, if it cannot be read"`
	Model      string  `json:"model,omitempty" jsonschema:"name of the model, if the served name does not identify it"`
}

type nothing struct{}

// Durations of measurements, in seconds. A verdict needs 40 s on either side.
const (
	diagnoseFor = 30
	measureFor  = 60
)

func (s *Server) addReading() {
	addTool(s, "list_servers", "Servers", "List the inference servers that can be measured: those among this machine's processes, and those that the user named when rooftop mcp was started.",
		document.ServersSchema, hints{}, s.listServers)
	addTool(s, "diagnose", "Diagnose a server",
		fmt.Sprintf("Measure a server for duration_s (default %d) while it serves its usual load, and say what limits it, how far it is from what its hardware allows, and the one change to make with its predicted gain. Changes nothing. The measurement is kept for verdict, compare and predict.", diagnoseFor),
		document.DiagnosisSchema, hints{world: true}, s.diagnose)
	addTool(s, "measure", "Measure a server",
		fmt.Sprintf("Measure a server for duration_s (default %d) and keep the measurement under a name, as one side of a verdict. Further measurements of the same settings count together. Changes nothing.", measureFor),
		document.MeasurementSchema, hints{world: true}, s.measure)
	addTool(s, "ceiling", "Limits of hardware", "Compute what hardware allows for a model at a load, without a server: ideal and achievable step time and rates, the binding term, KV capacity.",
		document.CeilingSchema, hints{}, s.ceiling)
	addTool(s, "explain", "Explain a word", "Explain a finding (its condition, limits with sources, remedy), a rule such as R2, a term of the reports, or a metric of a server's page.",
		"", hints{}, s.explain)
}

func (s *Server) listServers(context.Context, *mcp.CallToolRequest, nothing) (*result, error) {
	list := s.c.Found()
	for _, t := range s.c.Named {
		if !slices.ContainsFunc(list, func(l tuning.ListedServer) bool { return sameServer(l.URL, t) }) {
			list = append(list, tuning.ListedServer{URL: t.Base()})
		}
	}
	for i := range list {
		list[i].MayChange = sameServer(list[i].URL, s.c.Changeable)
	}
	return &result{page: tuning.Servers(list), document: func(w io.Writer) error { return document.WriteServers(w, list) }}, nil
}

// sameServer reports whether a URL leads to a target.
func sameServer(url string, t collect.Target) bool {
	u, err := collect.ParseTarget(url)
	return err == nil && !t.IsZero() && nameOf(u) == nameOf(t)
}

// nameOf returns one name for the addresses by which a server of this machine is reached.
func nameOf(t collect.Target) string {
	return strings.Replace(t.Base(), "://localhost:", "://127.0.0.1:", 1)
}

// errNotNamed refuses an address that the user did not give: an agent may have read it anywhere, and rooftop contacts
// only given addresses.
func errNotNamed(t collect.Target) error {
	return fmt.Errorf("%s is not on this machine, and rooftop mcp was not started for it: ask the user to add %s to its command line", t, launch.Line("--url", t.Base()))
}

// target returns the server of an argument, and whether the user named it.
func (s *Server) target(given string) (t collect.Target, named bool, err error) {
	list := s.c.Found()
	if given == "" {
		switch {
		case len(list) == 1 && list[0].URL != "":
			given = list[0].URL
		case len(list) == 0 && len(s.c.Named) == 1:
			return s.c.Named[0], true, nil
		default:
			return t, false, fmt.Errorf("%s can be measured: name one as server; list_servers lists them", figure.Counted(float64(len(list)+len(s.c.Named)), "server"))
		}
	}
	if t, err = collect.ParseTarget(given); err != nil {
		return t, false, err
	}
	named = slices.ContainsFunc(append(slices.Clip(s.c.Named), s.c.Changeable), func(n collect.Target) bool { return sameServer(given, n) })
	found := slices.ContainsFunc(list, func(l tuning.ListedServer) bool { return sameServer(l.URL, t) })
	if !named && !found && !onLoopback(t) {
		return t, false, errNotNamed(t)
	}
	return t, named, nil
}

// onLoopback reports whether an address is one of this machine by itself, without a name to resolve.
func onLoopback(t collect.Target) bool {
	host, _ := attach.HostPort(t)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// flags returns the arguments as flags of diagnose.
func (a *measureArguments) flags(t collect.Target, seconds float64) ([]string, error) {
	if a.Duration != 0 {
		seconds = a.Duration
	}
	if !(seconds >= attach.MinDuration.Seconds() && seconds <= attach.MaxDuration.Seconds()) {
		return nil, fmt.Errorf("duration_s %v: from %.0f to %.0f", seconds, attach.MinDuration.Seconds(), attach.MaxDuration.Seconds())
	}
	out := []string{"--url=" + t.String(), "--duration=" + time.Duration(seconds*float64(time.Second)).Round(time.Millisecond).String()}
	for _, f := range []struct{ name, value string }{
		{"max-num-seqs", integer(a.MaxNumSeqs)}, {"tensor-parallel-size", integer(a.TP)}, {"gpu", a.GPU}, {"model", a.Model},
	} {
		if f.value != "" {
			out = append(out, "--"+f.name+"="+f.value)
		}
	}
	return out, nil
}

// integer returns a number as the value of a flag, "" for an argument that was not given.
func integer(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// kept is a measurement that is kept for comparisons, under the name m1, m2, ….
type kept struct {
	server string // nameOf its target
	*loop.Measurement
}

// mostKept is the number of measurements that are kept. Each window of 2 s takes about 6 KB.
const mostKept = 32

func (s *Server) diagnose(ctx context.Context, q *mcp.CallToolRequest, in measureArguments) (*result, error) {
	k, note, err := s.take(ctx, q, &in, diagnoseFor)
	if err != nil {
		return nil, err
	}
	p := tuning.Diagnosis(&k.Diagnosis, tuning.Options{})
	p.Sections = slices.DeleteFunc(p.Sections, func(sec page.Section) bool { return sec.Terminal }) // about flags of a command
	return &result{page: p, note: note, document: func(w io.Writer) error { return document.WriteDiagnosis(w, &k.Diagnosis) }}, nil
}

func (s *Server) measure(ctx context.Context, q *mcp.CallToolRequest, in measureArguments) (*result, error) {
	k, note, err := s.take(ctx, q, &in, measureFor)
	if err != nil {
		return nil, err
	}
	return &result{page: tuning.Figures(&k.Diagnosis), note: note, document: func(w io.Writer) error { return document.WriteMeasurement(w, k.Measurement) }}, nil
}

// take measures a server and keeps the measurement. note says under which name.
func (s *Server) take(ctx context.Context, q *mcp.CallToolRequest, in *measureArguments, seconds float64) (k kept, note string, err error) {
	t, named, err := s.target(in.Server)
	if err != nil {
		return k, "", err
	}
	flags, err := in.flags(t, seconds)
	if err != nil {
		return k, "", err
	}
	o, err := s.c.Options(named, flags...)
	if err != nil {
		return k, "", err
	}
	k = kept{nameOf(t), new(loop.Measurement)}
	release, err := s.claim(k.server)
	if err != nil {
		return k, "", err
	}
	defer release()
	a, err := s.c.Attach(ctx, o)
	if err != nil {
		return k, "", err
	}
	if a.Close != nil {
		defer a.Close()
	}
	tell := teller(ctx, q)
	k.Inputs = a.Header.Inputs
	k.Diagnosis, err = session.Measure(ctx, session.Plan{
		Server: a, Version: s.c.Version, Duration: o.Duration,
		Progress: func(p *session.Progress) {
			if p.Sample.Page != nil {
				k.ReadAt(p.Sample.Page)
			}
			if p.Window != nil {
				k.Windows = append(k.Windows, p.Window.Clone())
				tell(p.Elapsed, p.Duration, progress(p))
			}
		},
	})
	switch {
	case err != nil:
		return k, "", err
	case ctx.Err() != nil:
		return k, "", errors.New("canceled: nothing was kept")
	}
	return k, s.keep(&k), nil
}

// claim reserves a server for one measurement or change.
func (s *Server) claim(server string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[server] {
		return nil, fmt.Errorf("%s is being measured or changed by another call: wait for it", server)
	}
	s.busy[server] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, server)
	}, nil
}

// keep names a measurement and keeps it, unless the server was restarted meanwhile: it would be of two configurations.
func (s *Server) keep(k *kept) (note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	k.Name = "m" + strconv.Itoa(s.made)
	if k.FirstStart != k.LastStart || slices.ContainsFunc(k.Windows, func(w engine.Window) bool { return w.Restarted || w.AfterRestart }) {
		return "This measurement, " + k.Name + ", is not kept: the server was restarted while it was measured."
	}
	s.measured = append(s.measured, *k)
	s.measured = s.measured[max(0, len(s.measured)-mostKept):]
	return "Kept as measurement " + k.Name + "."
}

// teller returns a function that reports the progress of a call to the client, if it asked for that.
func teller(ctx context.Context, q *mcp.CallToolRequest) func(done, of time.Duration, text string) {
	token := q.Params.GetProgressToken()
	return func(done, of time.Duration, text string) {
		if token != nil { // a client that does not listen loses nothing but this
			_ = q.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done.Seconds(), Total: of.Seconds(), Message: clean(text)})
		}
	}
}

// progress describes a measurement that is under way.
func progress(p *session.Progress) string {
	w := p.Window
	return fmt.Sprintf("%s running, %s waiting, %s", figure.Show(w.Running, ""), figure.Show(w.Waiting, ""), figure.Show(w.Rate[engine.CounterGenerationTokens], "tok/s"))
}

// ceilingArguments are flags of the command ceiling.
type ceilingArguments struct {
	Model       string  `json:"model" jsonschema:"name of the model: a Hugging Face id or a short name"`
	GPU         string  `json:"gpu" jsonschema:"name of the GPU, such as H100 SXM or L4"`
	TP          int     `json:"tensor_parallel_size,omitempty" jsonschema:"number of GPUs (default 1)"`
	Batch       int     `json:"batch,omitempty" jsonschema:"sequences that decode concurrently (default 1)"`
	Context     float64 `json:"context_tokens,omitempty" jsonschema:"mean tokens of a sequence's context (default 1024)"`
	Prompt      float64 `json:"prompt_tokens,omitempty" jsonschema:"tokens of a prompt (default 1024)"`
	Weights     string  `json:"weight_dtype,omitempty" jsonschema:"type of the weights: bf16, fp8, int4, nvfp4, mxfp4 (default the model's own)"`
	KV          string  `json:"kv_cache_dtype,omitempty" jsonschema:"type of the KV cache (default the model's 16-bit type)"`
	Utilization float64 `json:"gpu_memory_utilization,omitempty" jsonschema:"share of GPU memory that vLLM may use, 0 to 1 (default 0.92)"`
	Eager       bool    `json:"enforce_eager,omitempty" jsonschema:"run without CUDA graphs"`
}

func (s *Server) ceiling(ctx context.Context, _ *mcp.CallToolRequest, in ceilingArguments) (*result, error) {
	args := []string{"ceiling", "--model=" + in.Model, "--gpu=" + in.GPU}
	if in.Eager {
		args = append(args, "--enforce-eager")
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"tp", float64(in.TP)}, {"batch", float64(in.Batch)}, {"context", in.Context}, {"prompt", in.Prompt}, {"gpu-memory-utilization", in.Utilization}} {
		switch {
		case f.value == 0:
		case math.Abs(f.value) > math.MaxInt32:
			return nil, fmt.Errorf("%s %v is out of range", f.name, f.value)
		default:
			args = append(args, "--"+f.name+"="+strconv.FormatFloat(f.value, 'f', -1, 64))
		}
	}
	for _, f := range [][2]string{{"weight-dtype", in.Weights}, {"kv-dtype", in.KV}} {
		if f[1] != "" {
			args = append(args, "--"+f[0]+"="+f[1])
		}
	}
	return s.command(ctx, args)
}

type explainArguments struct {
	Word string `json:"word" jsonschema:"id of a finding (concurrency-saturation), a rule (R2), a term (TTFT p99), or a metric (vllm:kv_cache_usage_perc)"`
}

func (s *Server) explain(ctx context.Context, _ *mcp.CallToolRequest, in explainArguments) (*result, error) {
	if strings.TrimSpace(in.Word) == "" {
		return nil, errors.New("explain: name a finding, a rule, a term or a metric")
	}
	return s.command(ctx, []string{"explain"}, "--", in.Word)
}

// command returns what a command of rooftop prints, as text and as a document.
func (s *Server) command(ctx context.Context, args []string, more ...string) (*result, error) {
	text, err := s.c.Command(ctx, slices.Concat(args, more)...)
	if err != nil {
		return nil, err
	}
	written, err := s.c.Command(ctx, slices.Concat(args, []string{"--json"}, more)...)
	if err != nil {
		return nil, err
	}
	return &result{text: text, document: func(w io.Writer) error {
		_, err := io.WriteString(w, written)
		return err
	}}, nil
}
