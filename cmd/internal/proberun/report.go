package proberun

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Limits for the send lag from which latencies from the actual send are shown, too: it is long, and
// not small compared to the latencies.
const (
	lagWorthTelling = 5 * time.Millisecond
	lagShare        = 20 // of the median time to first token
)

// printLoad writes the results of a load.
func printLoad(w io.Writer, s *loadgen.Summary, l *loadgen.Load, how string) error {
	var b bytes.Buffer
	if s.Simulated {
		b.WriteString("SIMULATED: the server says that it is a simulation; its times say nothing about hardware\n")
	}
	fmt.Fprintf(&b, "%s, seed %d, %s; prompts: %s\n\n", offerInWords(l), l.Seed, figure.Duration(s.Elapsed), how)
	fmt.Fprintf(&b, "offered    %8s req/s   %s\n", figure.Significant(s.OfferedPerSecond), figure.Counted(s.Sent, "request"))
	fmt.Fprintf(&b, "answered   %8s req/s   %s, %s output tok/s", figure.Significant(s.RequestsPerSecond), figure.Counted(s.Requests, "request"), figure.Significant(s.OutputPerSecond))
	if s.Requests > 0 {
		fmt.Fprintf(&b, ", %s prompt tokens on average", figure.Significant(float64(s.PromptTokens)/float64(s.Requests)))
	}
	if s.CachedTokens > 0 && s.PromptTokens > 0 {
		fmt.Fprintf(&b, ", %s of them cached", figure.PercentSign(float64(s.CachedTokens)/float64(s.PromptTokens)))
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "failed     %8d requests", s.Errors)
	for _, r := range []struct {
		n    int
		what string
	}{
		{s.Retries, "attempts repeated"}, {s.Cancelled, "cancelled by the load"}, {s.Expired, "given up at the deadline"}, {s.Unfinished, "cut off at the end"},
	} {
		if r.n > 0 {
			fmt.Fprintf(&b, ", %d %s", r.n, r.what)
		}
	}
	b.WriteByte('\n')
	if g := s.Goodput; g != nil {
		fmt.Fprintf(&b, "goodput    %8s req/s   %s of %d requests met %s\n", figure.Significant(g.PerSecond), percentOf(g), g.Judged, g.SLO)
	}
	b.WriteByte('\n')
	printLatencies(&b, s, l)
	if n := s.NoFirstToken; n > 0 {
		fmt.Fprintf(&b, "\n%d requests had no first token before they were given up; not in TTFT\n", n)
	}
	if len(s.Phases) > 0 {
		b.WriteByte('\n')
		printPhases(&b, s, l)
	}
	if len(s.Failures) > 0 {
		b.WriteByte('\n')
	}
	for _, f := range s.Failures {
		fmt.Fprintf(&b, "%d x %s: %s\n", f.Count, f.Kind, f.Example)
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), figure.NBSP, " "))
	return err
}

// offerInWords describes the offered load.
func offerInWords(l *loadgen.Load) string {
	switch {
	case l.Arrival == loadgen.Replay:
		return "a replayed trace"
	case l.Arrival == loadgen.Closed && len(l.Phases) > 0:
		return fmt.Sprintf("closed loop in %d steps", len(l.Phases))
	case l.Arrival == loadgen.Closed:
		return fmt.Sprintf("closed loop of %d clients", l.Clients)
	case len(l.Phases) > 0:
		return fmt.Sprintf("%v arrivals in %d steps", l.Arrival, len(l.Phases))
	}
	return fmt.Sprintf("%v arrivals of %g req/s", l.Arrival, l.Rate)
}

func percentOf(g *loadgen.Goodput) string {
	if !g.Share.OK {
		return figure.Absent
	}
	return figure.PercentSign(g.Share.V)
}

func printLatencies(b *bytes.Buffer, s *loadgen.Summary, l *loadgen.Load) {
	fmt.Fprintf(b, "%-10s%11s%11s%11s%11s%11s\n", "", "mean", "p50", "p95", "p99", "max")
	row := func(name string, l capture.Distribution) {
		fmt.Fprintf(b, "%-10s", name)
		for _, d := range []time.Duration{l.Mean, l.P50, l.P95, l.P99, l.Max} {
			fmt.Fprintf(b, "%11s", latency(d, l.Count))
		}
		b.WriteByte('\n')
	}
	row("TTFT", s.TTFT)
	row("ITL", s.ITL)
	row("TPOT", s.TPOT)
	row("E2E", s.E2E)
	row("send lag", s.SendLag)
	if s.SendLag.P99 >= max(lagWorthTelling, s.TTFT.P50/lagShare) {
		late := " late: this machine or its connections did not keep the schedule"
		if l.Arrival == loadgen.Closed { // which has no schedule: a client sends when it has its answer
			late = " after their client was ready: this machine or its connections were busy"
		}
		fmt.Fprintf(b, "\n1 %% of the requests were sent at least %s%s.\nTTFT and E2E count from the intended time; from the actual send they are\n", latency(s.SendLag.P99, s.SendLag.Count), late)
		row("TTFT", s.TTFTSent)
		row("E2E", s.E2ESent)
	}
}

// latency formats a latency, absent without any.
func latency(d time.Duration, count int) string {
	if count == 0 {
		return figure.Absent
	}
	return figure.Duration(d)
}

func printPhases(b *bytes.Buffer, s *loadgen.Summary, l *loadgen.Load) {
	unit := "req/s"
	if l.Arrival == loadgen.Closed {
		unit = "clients"
	}
	fmt.Fprintf(b, "%-14s%12s%9s%9s%9s%10s%11s%11s", "from", unit, "sent/s", "ok", "failed", "tok/s", "TTFT p50", "TTFT p99")
	if s.Goodput != nil {
		fmt.Fprintf(b, "%9s", "good")
	}
	b.WriteByte('\n')
	for i := range s.Phases {
		p := &s.Phases[i]
		level := fmt.Sprintf("%g", p.FromLevel)
		if p.FromLevel != p.ToLevel {
			level += fmt.Sprintf("-%g", p.ToLevel)
		}
		fmt.Fprintf(b, "%-14s%12s%9s%9d%9d%10s%11s%11s", fmt.Sprintf("%.0f s", p.From.Seconds()), level,
			figure.Significant(p.OfferedPerSecond), p.Requests, p.Errors+p.Expired, figure.Significant(p.OutputPerSecond),
			latency(p.TTFT.P50, p.TTFT.Count), latency(p.TTFT.P99, p.TTFT.Count))
		if p.Goodput != nil {
			fmt.Fprintf(b, "%9s", percentOf(p.Goodput))
		}
		b.WriteByte('\n')
	}
}
