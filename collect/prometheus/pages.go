package prometheus

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Server is what was scraped of one vLLM server.
type Server struct {
	// Name tells it from the others: its instance, with job and cluster where several servers have it.
	Name   string
	Labels model.LabelSet // those of its target: job, instance and cluster
	Pages  []Page         // in the order of time
}

// Page is the page of one scrape, as text of the exposition format without comments.
type Page struct {
	At   time.Time
	Text []byte
	Down bool // the server could not be scraped; there is no text
}

// targetLabels tell one scraped server from another.
var targetLabels = [...]model.LabelName{"cluster", model.JobLabel, model.InstanceLabel}

// Interval returns the median time between scrapes, 0 if there are fewer than two.
func (s *Server) Interval() time.Duration {
	var gaps []time.Duration
	for i := range len(s.Pages) - 1 {
		gaps = append(gaps, s.Pages[i+1].At.Sub(s.Pages[i].At))
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// servers groups series into the servers and scrapes that they come from. Servers without a
// series of vLLM are kept if they could not be scraped; with a selection by the user, only if they
// had one before.
func servers(series model.Matrix, selected bool, r Range) []Server {
	byTarget := map[string]*scraped{}
	for _, s := range series {
		labels := model.LabelSet{}
		for _, name := range targetLabels {
			if v := s.Metric[name]; v != "" {
				labels[name] = v
			}
		}
		key := labels.String()
		if byTarget[key] == nil {
			byTarget[key] = &scraped{labels: labels}
		}
		byTarget[key].series = append(byTarget[key].series, s)
	}
	var out []Server
	for _, key := range slices.Sorted(maps.Keys(byTarget)) {
		if s := byTarget[key].server(r); s != nil && (!selected || byTarget[key].vllm) {
			out = append(out, *s)
		}
	}
	nameServers(out)
	return out
}

// nameServers names each server by its instance, and by job and cluster as well where instances
// occur twice.
func nameServers(list []Server) {
	seen := map[model.LabelValue]int{}
	for i := range list {
		seen[list[i].Labels[model.InstanceLabel]]++
	}
	for i := range list {
		l := list[i].Labels
		list[i].Name = string(l[model.InstanceLabel])
		if list[i].Name == "" || seen[l[model.InstanceLabel]] > 1 {
			list[i].Name = l.String()
		}
	}
}

// scraped are the series of one server.
type scraped struct {
	labels model.LabelSet
	series []*model.SampleStream
	vllm   bool // one of them is vLLM's
}

// server returns the pages of the series, nil if the server is none of vLLM: one that was up
// without any of its series.
func (g *scraped) server(r Range) *Server {
	pages := map[model.Time]*bytes.Buffer{}
	down := map[model.Time]bool{}
	at := func(t model.Time) *bytes.Buffer {
		if pages[t] == nil {
			pages[t] = &bytes.Buffer{}
		}
		return pages[t]
	}
	slices.SortStableFunc(g.series, func(a, b *model.SampleStream) int {
		return cmp.Or(cmp.Compare(a.Metric[model.MetricNameLabel], b.Metric[model.MetricNameLabel]), cmp.Compare(bound(a), bound(b)))
	})
	for _, s := range g.series {
		name := string(s.Metric[model.MetricNameLabel])
		if name == "up" {
			for _, v := range s.Values {
				down[v.Timestamp] = v.Value == 0
			}
			continue
		}
		g.vllm = g.vllm || strings.Contains(name, "vllm")
		text := seriesText(name, s.Metric)
		for _, v := range s.Values {
			writeSample(at(v.Timestamp), text, float64(v.Value))
		}
		for _, v := range s.Histograms {
			writeHistogram(at(v.Timestamp), name, s.Metric, v.Histogram)
		}
	}
	failed := false
	for t, is := range down {
		if is {
			failed = true
			at(t)
		}
	}
	if !g.vllm && !failed {
		return nil
	}
	out := Server{Labels: g.labels}
	for _, t := range slices.Sorted(maps.Keys(pages)) {
		if when := t.Time(); !when.Before(r.From) && !when.After(r.To) {
			out.Pages = append(out.Pages, Page{At: when, Text: pages[t].Bytes(), Down: down[t]})
		}
	}
	return &out
}

// bound returns the upper bound of a histogram's bucket.
func bound(s *model.SampleStream) float64 {
	v, _ := strconv.ParseFloat(string(s.Metric[model.BucketLabel]), 64)
	return v
}

// seriesText returns a series as a page has it, without the labels of its target.
func seriesText(name string, labels model.Metric) string {
	var b strings.Builder
	b.WriteString(name)
	separator := byte('{')
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if label == model.MetricNameLabel || slices.Contains(targetLabels[:], label) {
			continue
		}
		b.WriteByte(separator)
		separator = ','
		b.WriteString(string(label))
		b.WriteString(`="`)
		_, _ = escapes.WriteString(&b, string(labels[label]))
		b.WriteByte('"')
	}
	if separator == ',' {
		b.WriteByte('}')
	}
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func writeSample(b *bytes.Buffer, series string, value float64) {
	b.WriteString(series)
	b.WriteByte(' ')
	b.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	b.WriteByte('\n')
}

// writeHistogram writes a native histogram, such as Prometheus makes of a classic one where it is
// so configured, with the buckets that it has.
func writeHistogram(b *bytes.Buffer, name string, labels model.Metric, h *model.SampleHistogram) {
	with := labels.Clone()
	total := 0.0
	for _, bucket := range h.Buckets {
		total += float64(bucket.Count)
		with[model.BucketLabel] = model.LabelValue(strconv.FormatFloat(float64(bucket.Upper), 'g', -1, 64))
		writeSample(b, seriesText(name+"_bucket", with), total)
	}
	with[model.BucketLabel] = "+Inf"
	writeSample(b, seriesText(name+"_bucket", with), float64(h.Count))
	writeSample(b, seriesText(name+"_count", labels), float64(h.Count))
	writeSample(b, seriesText(name+"_sum", labels), float64(h.Sum))
}
