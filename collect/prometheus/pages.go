package prometheus

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Page is the page of one scrape, as text of the exposition format without comments.
type Page struct {
	At   time.Time
	Text []byte
	Down bool // the server could not be scraped; there is no text
}

// Interval returns the median time between scrapes, 0 if there are fewer than two.
func Interval(pages []Page) time.Duration {
	var gaps []time.Duration
	for i := range len(pages) - 1 {
		gaps = append(gaps, pages[i+1].At.Sub(pages[i].At))
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// pages returns the pages of one server's series: samples of one scrape have one time.
func pages(series model.Matrix, r Range) []Page {
	texts := map[model.Time]*bytes.Buffer{}
	down := map[model.Time]bool{}
	at := func(t model.Time) *bytes.Buffer {
		if texts[t] == nil {
			texts[t] = &bytes.Buffer{}
		}
		return texts[t]
	}
	slices.SortStableFunc(series, func(a, b *model.SampleStream) int {
		return cmp.Or(cmp.Compare(a.Metric[model.MetricNameLabel], b.Metric[model.MetricNameLabel]), cmp.Compare(bound(a), bound(b)))
	})
	classic := map[string]bool{} // families that were scraped as classic histograms, as well as native ones perhaps
	for _, s := range series {
		if family, counts := strings.CutSuffix(string(s.Metric[model.MetricNameLabel]), "_count"); counts {
			classic[family] = true
		}
	}
	bounds := map[string][]float64{} // of the native ones
	for _, s := range series {
		name := string(s.Metric[model.MetricNameLabel])
		if len(s.Histograms) > 0 && !classic[name] && bounds[name] == nil {
			bounds[name] = commonBounds(name, series)
		}
		if name == "up" {
			for _, v := range s.Values {
				if v.Value == 0 {
					down[v.Timestamp] = true
					at(v.Timestamp)
				}
			}
			continue
		}
		text := seriesText(name, s.Metric)
		for _, v := range s.Values {
			writeSample(at(v.Timestamp), text, float64(v.Value))
		}
		if classic[name] {
			continue
		}
		for _, v := range s.Histograms {
			writeHistogram(at(v.Timestamp), name, s.Metric, v.Histogram, bounds[name])
		}
	}
	var out []Page
	for _, t := range slices.Sorted(maps.Keys(texts)) {
		if when := t.Time(); !when.Before(r.From) && !when.After(r.To) {
			out = append(out, Page{At: when, Text: texts[t].Bytes(), Down: down[t]})
		}
	}
	return out
}

// bound returns the upper bound of a histogram's bucket.
func bound(s *model.SampleStream) float64 {
	v, _ := strconv.ParseFloat(string(s.Metric[model.BucketLabel]), 64)
	return v
}

// seriesText returns a series as a page has it, without the labels of its target. If both have a label, such as the
// endpoint of a ServiceMonitor, Prometheus renames the page's to exported_….
func seriesText(name string, labels model.Metric) string {
	var b strings.Builder
	b.WriteString(name)
	separator := byte('{')
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if label == model.MetricNameLabel || slices.Contains(targetLabels[:], label) {
			continue
		}
		if _, both := labels[exported+label]; both {
			continue
		}
		value := labels[label]
		if name, renamed := strings.CutPrefix(string(label), exported); renamed && labels[model.LabelName(name)] != "" {
			label = model.LabelName(name)
		}
		b.WriteByte(separator)
		separator = ','
		b.WriteString(string(label))
		b.WriteString(`="`)
		_, _ = escapes.WriteString(&b, string(value))
		b.WriteByte('"')
	}
	if separator == ',' {
		b.WriteByte('}')
	}
	return b.String()
}

const exported = "exported_"

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func writeSample(b *bytes.Buffer, series string, value float64) {
	b.WriteString(series)
	b.WriteByte(' ')
	b.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	b.WriteByte('\n')
}

// commonBounds returns the bounds at which every histogram of a family can be counted, in ascending order. Prometheus
// leaves out the empty buckets of a native histogram, so that those of two ranks and of two scrapes differ; and it
// halves their number if there are too many, so that a bound may lie within a bucket of another.
func commonBounds(name string, series model.Matrix) []float64 {
	type bucket struct{ lower, upper float64 }
	found := map[bucket]bool{}
	for _, s := range series {
		if string(s.Metric[model.MetricNameLabel]) != name {
			continue
		}
		for _, v := range s.Histograms {
			for _, b := range v.Histogram.Buckets {
				if lower, upper := float64(b.Lower), float64(b.Upper); lower < upper {
					found[bucket{lower, upper}] = true
				}
			}
		}
	}
	var bounds []float64
	for b := range found {
		if b.lower > 0 {
			bounds = append(bounds, b.lower)
		}
		if !math.IsInf(b.upper, 1) {
			bounds = append(bounds, b.upper)
		}
	}
	slices.Sort(bounds)
	buckets := slices.SortedFunc(maps.Keys(found), func(a, b bucket) int { return cmp.Compare(a.lower, b.lower) })
	covered := math.Inf(-1) // up to where the buckets that begin below a bound reach
	return slices.DeleteFunc(slices.Compact(bounds), func(bound float64) bool {
		for len(buckets) > 0 && buckets[0].lower < bound {
			covered, buckets = max(covered, buckets[0].upper), buckets[1:]
		}
		return covered > bound
	})
}

// writeHistogram writes a native histogram, such as Prometheus makes of a classic one if it is
// configured to, with the bounds that the histograms of its family have in common.
func writeHistogram(b *bytes.Buffer, name string, labels model.Metric, h *model.SampleHistogram, bounds []float64) {
	with := labels.Clone()
	total, buckets := 0.0, h.Buckets
	for _, bound := range bounds {
		for len(buckets) > 0 && float64(buckets[0].Upper) <= bound {
			total, buckets = total+float64(buckets[0].Count), buckets[1:]
		}
		with[model.BucketLabel] = model.LabelValue(strconv.FormatFloat(bound, 'g', -1, 64))
		writeSample(b, seriesText(name+"_bucket", with), total)
	}
	with[model.BucketLabel] = "+Inf"
	writeSample(b, seriesText(name+"_bucket", with), float64(h.Count))
	writeSample(b, seriesText(name+"_count", labels), float64(h.Count))
	writeSample(b, seriesText(name+"_sum", labels), float64(h.Sum))
}
