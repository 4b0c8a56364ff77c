// Package fleetscan diagnoses many servers: those that a Prometheus server scraped, without contacting
// them, or those of a file or of Kubernetes, by polling each for a while. It reads the list again and
// again for a screen. Package engine/fleet computes what the diagnoses have in common.
package fleetscan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/prometheus"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Scraped are the flags that choose servers and a time in a Prometheus server.
type Scraped struct {
	Prometheus string
	Match      string
	Since      time.Duration
	From, To   string
	HTTPConfig string

	flags *pflag.FlagSet
	dial  prometheus.Dial // of tests, nil for the network
}

// timeExample shows how --from and --to are written.
const timeExample = "2026-11-26T03:00:00Z"

// defaultSince is the time before now that is read where no other is given: a window needs three
// scrapes, and a diagnosis three windows.
const defaultSince = 10 * time.Minute

// Register adds the flags.
func (o *Scraped) Register(f *pflag.FlagSet) { o.register(f, true) }

// RegisterServers adds the flags that choose servers, and none for a time.
func (o *Scraped) RegisterServers(f *pflag.FlagSet) { o.register(f, false) }

func (o *Scraped) register(f *pflag.FlagSet, times bool) {
	o.flags = f
	f.StringVar(&o.Prometheus, "prometheus", "", "`URL` of a Prometheus server, or of Thanos, Mimir or VictoriaMetrics, that scraped the server")
	f.StringVar(&o.Match, "match", "", "label `MATCHERS` of its series: 'model_name=\"x\",instance=~\"gpu-7:.*\"'")
	if times {
		f.DurationVar(&o.Since, "since", defaultSince, "`TIME` before now to read")
		f.StringVar(&o.From, "from", "", "`TIME` to read from, such as "+timeExample+", instead of --since")
		f.StringVar(&o.To, "to", "", "`TIME` to read to (default now)")
	}
	f.StringVar(&o.HTTPConfig, "http-config", "", "YAML `FILE` with TLS, credentials and headers for it, like promtool's --http.config.file")
}

// Between returns the range between two times, as Span does for those of the flags.
func (o *Scraped) Between(from, to string) (prometheus.Range, error) {
	q := *o
	q.From, q.To = from, to
	return q.Span(time.Time{})
}

// others are the flags that need --prometheus.
var others = [...]string{"match", "since", "from", "to", "http-config"}

// Span returns the time to read. now is the present. It returns a usage error if the flags contradict
// each other.
func (o *Scraped) Span(now time.Time) (prometheus.Range, error) {
	none := prometheus.Range{}
	if o.Prometheus == "" {
		for _, name := range others {
			if o.flags.Changed(name) {
				return none, cli.Usagef("--%s goes with --prometheus URL", name)
			}
		}
		return none, nil
	}
	r := prometheus.Range{To: now}
	var err error
	if o.To != "" {
		if r.To, err = time.Parse(time.RFC3339, o.To); err != nil {
			return none, cli.Usagef("--to %s is not a time: write it as %s", o.To, timeExample)
		}
	}
	r.From = r.To.Add(-o.Since)
	if o.From != "" {
		if o.flags.Changed("since") {
			return none, cli.Usagef("--from and --since both set the start: give one")
		}
		if r.From, err = time.Parse(time.RFC3339, o.From); err != nil {
			return none, cli.Usagef("--from %s is not a time: write it as %s", o.From, timeExample)
		}
	}
	switch span := r.To.Sub(r.From); {
	case span < time.Minute:
		return none, cli.Usagef("%s from %s is too short: a diagnosis needs at least nine scrapes", span.Round(time.Second), r.From.UTC().Format(time.RFC3339))
	case span > attach.MaxDuration:
		return none, cli.Usagef("%s from %s is too long: at most %s, which one diagnosis holds in memory", cli.FormatTime(span.Round(time.Second)), r.From.UTC().Format(time.RFC3339), cli.FormatTime(attach.MaxDuration))
	}
	return r, nil
}

// maxHTTPConfig limits the file of --http-config, in bytes.
const maxHTTPConfig = 1 << 20

// source returns the Prometheus server. series are the names of the series to read, nil for all. The error is a
// usage error: it is not contacted.
func (o *Scraped) source(series []string) (*prometheus.Source, error) {
	read := func(path string) ([]byte, error) { return cli.ReadFile(path, maxHTTPConfig) }
	source, err := prometheus.Open(prometheus.Options{URL: o.Prometheus, HTTPConfig: o.HTTPConfig, Read: read, UserAgent: "rooftop/" + cli.Version(), Series: series, Dial: o.dial})
	if err != nil {
		return nil, cli.Usagef("--prometheus: %w", err)
	}
	return source, nil
}

// Check rejects an address that is not one of a Prometheus server, without contacting it. The error is a usage error.
func (o *Scraped) Check() error {
	_, err := o.source(nil)
	return err
}

// Open returns a source and the servers that were scraped in a range. series are the names of the series to
// read, nil for all. The error has the exit code.
func (o *Scraped) Open(ctx context.Context, r prometheus.Range, series []string) (*prometheus.Source, []prometheus.Target, error) {
	source, err := o.source(series)
	if err != nil {
		return nil, nil, err
	}
	list, err := source.Targets(ctx, o.Match, r)
	if err == nil && len(list) == 0 {
		selected := ""
		if o.Match != "" {
			selected = " that match " + o.Match
		}
		err = cli.Fail(cli.ExitUnreachable, fmt.Errorf("%s has no series of an engine that rooftop knows%s from %s to %s: check that it scrapes the server, and --match and the times",
			o.Prometheus, selected, r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339)))
	}
	return source, list, coded(ctx, err)
}

// coded returns an error of a source with its exit code.
func coded(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(ctx)
	case errors.Is(err, collect.ErrUnreachable):
		return cli.Fail(cli.ExitUnreachable, err)
	}
	return err
}

// Diagnose diagnoses one server in a range. given are the facts that the user gives about it. It
// records the scrapes, unless record is nil. The error has the exit code.
func (o *Scraped) Diagnose(ctx context.Context, source *prometheus.Source, t prometheus.Target, r prometheus.Range, given *attach.Options, record *session.Recorder) (engine.Diagnosis, error) {
	one := []prometheus.Target{t}
	pages, err := source.Pages(ctx, one, r)
	if err != nil {
		return engine.Diagnosis{}, coded(ctx, err)
	}
	nameGPUs(ctx, source, one, r, given)
	return o.examine(one[0], pages[0], r, given, record)
}

// nameGPUs finds the GPUs of servers, unless the user names them.
func nameGPUs(ctx context.Context, source *prometheus.Source, list []prometheus.Target, r prometheus.Range, given *attach.Options) {
	if given.GPU == "" {
		source.NameGPUs(ctx, list, r)
	}
}

// examine diagnoses the pages of one server.
func (o *Scraped) examine(t prometheus.Target, pages []prometheus.Page, r prometheus.Range, given *attach.Options, record *session.Recorder) (engine.Diagnosis, error) {
	a, err := attach.NewServer(given)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	h := &a.Header
	h.Started, h.Target.URL = r.From.UTC(), t.Name
	h.GPUWhy = "Prometheus scraped the server, and at most the name and number of its GPUs"
	h.Inputs.NodeGPU, h.Inputs.NodeGPULabel, h.Inputs.PodGPUs = t.GPU, prometheus.GPULabel, t.GPUs
	for _, p := range pages {
		h.Target.Simulated = h.Target.Simulated || enginepage.Simulated(p.Text)
		if given.Model != "" && strings.Contains(string(p.Text), fmt.Sprintf("model_name=%q", given.Model)) {
			h.Model = given.Model
		}
	}
	if every := prometheus.Interval(pages); every > 0 {
		a.Miss("what happens between scrapes", "Prometheus scraped the server every "+figure.Duration(every), "peaks, the shortest queue and single steps are those of the scrapes")
	}
	a.Miss("launch command", "Prometheus has none", engine.WithoutLaunch)
	h.Notes = append(h.Notes, fmt.Sprintf("as scraped by %s from %s to %s", o.Prometheus, r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339)))
	return session.Examine(*h, polls(pages, r), session.End{Duration: r.To.Sub(r.From)}, cli.Version(), record)
}

// A server counts as no longer scraped if so many scrapes are missing at the end of a range or, if a single scrape does
// not show the interval, after the time at which Prometheus considers a series gone.
const (
	missedScrapes = 3
	lookback      = 5 * time.Minute
)

// polls returns the scrapes of a server as polls. A server that is no longer scraped at the end, such as one
// whose target was removed, ends with a poll that failed: its earlier state is not its present one.
func polls(pages []prometheus.Page, r prometheus.Range) []session.Poll {
	var out []session.Poll
	add := func(at time.Duration, text, failed string) {
		out = append(out, session.Poll{T: at, PageT: at, Body: text, PageErr: failed})
	}
	for _, p := range pages {
		if p.Down {
			add(p.At.Sub(r.From), "", "Prometheus could not scrape the server")
		} else {
			add(p.At.Sub(r.From), string(p.Text), "")
		}
	}
	silence := lookback
	if every := prometheus.Interval(pages); every > 0 {
		silence = missedScrapes * every
	}
	if n := len(pages); n > 0 && r.To.Sub(pages[n-1].At) > silence {
		add(r.To.Sub(r.From), "", "Prometheus no longer scrapes the server")
	}
	return out
}
