package loadrun

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/engine/capture"
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
		b.WriteString("SIMULATED: the server says that it is a simulation; its times are no evidence of hardware\n")
	}
	fmt.Fprintf(&b, "%s, seed %d, %.1f s; prompts: %s\n\n", offerInWords(l), l.Seed, s.Elapsed.Seconds(), how)
	fmt.Fprintf(&b, "offered    %8.2f req/s   %d requests\n", s.OfferedPerSecond, s.Sent)
	fmt.Fprintf(&b, "answered   %8.2f req/s   %d requests, %.1f output tok/s", s.RequestsPerSecond, s.Requests, s.OutputPerSecond)
	if s.Requests > 0 {
		fmt.Fprintf(&b, ", %.0f prompt tokens on average", float64(s.PromptTokens)/float64(s.Requests))
	}
	if s.CachedTokens > 0 && s.PromptTokens > 0 {
		fmt.Fprintf(&b, ", %.0f %% of them cached", 100*float64(s.CachedTokens)/float64(s.PromptTokens))
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
		fmt.Fprintf(&b, "goodput    %8.2f req/s   %s of %d requests met %s\n", g.PerSecond, percentOf(g), g.Judged, g.SLO)
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
	_, err := w.Write(b.Bytes())
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
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*g.Share.V)
}

func printLatencies(b *bytes.Buffer, s *loadgen.Summary, l *loadgen.Load) {
	fmt.Fprintf(b, "%-10s%11s%11s%11s%11s%11s\n", "", "mean", "p50", "p95", "p99", "max")
	row := func(name string, l capture.Distribution) {
		fmt.Fprintf(b, "%-10s", name)
		for _, d := range []time.Duration{l.Mean, l.P50, l.P95, l.P99, l.Max} {
			fmt.Fprintf(b, "%11s", milliseconds(d, l.Count))
		}
		b.WriteByte('\n')
	}
	row("TTFT", s.TTFT)
	row("ITL", s.ITL)
	row("TPOT", s.TPOT)
	row("E2E", s.E2E)
	row("send lag", s.SendLag)
	if s.SendLag.P99 >= max(lagWorthTelling, s.TTFT.P50/lagShare) {
		late := " late or more: this machine or its connections did not keep the schedule"
		if l.Arrival == loadgen.Closed { // which has no schedule: a client sends when it has its answer
			late = " or more after its client was ready: this machine or its connections were busy"
		}
		fmt.Fprintf(b, "\n1 request in 100 went out %s%s.\nTTFT and E2E are from the intended time; from the actual send they are\n", milliseconds(s.SendLag.P99, s.SendLag.Count), late)
		row("TTFT", s.TTFTSent)
		row("E2E", s.E2ESent)
	}
}

// milliseconds formats a latency with at least three digits.
func milliseconds(d time.Duration, count int) string {
	switch ms := d.Seconds() * 1e3; {
	case count == 0:
		return "–"
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
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
		fmt.Fprintf(b, "%-14s%12s%9.2f%9d%9d%10.1f%11s%11s", fmt.Sprintf("%.0f s", p.From.Seconds()), level,
			p.OfferedPerSecond, p.Requests, p.Errors+p.Expired, p.OutputPerSecond,
			milliseconds(p.TTFT.P50, p.TTFT.Count), milliseconds(p.TTFT.P99, p.TTFT.Count))
		if p.Goodput != nil {
			fmt.Fprintf(b, "%9s", percentOf(p.Goodput))
		}
		b.WriteByte('\n')
	}
}
