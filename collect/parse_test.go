package collect

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// flat is a sample without identity, for comparison.
type flat struct {
	Series string
	Value  float64
}

func flatten(f *Families) []flat {
	var out []flat
	for _, s := range f.Samples {
		out = append(out, flat{s.String(), s.Value})
	}
	return out
}

// recording returns a page that a real vLLM 0.32.0 on a CPU sent under load.
func recording(t testing.TB) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("vllm", "testdata", "vllm-0.32.0-cpu-loaded.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// familyFilter passes what the families may have on a page.
func familyFilter(families ...string) *Filter {
	var names []string
	for _, family := range families {
		for _, suffix := range []string{"", "_total", "_bucket", "_sum", "_count", "_created"} {
			names = append(names, family+suffix)
		}
	}
	return NewExactFilter(names...)
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, page string
		want       []flat
	}{
		{"classic", "# HELP a text\n# TYPE a gauge\na 1\na{x=\"y\"} 2.5\n", []flat{{"a", 1}, {`a{x="y"}`, 2.5}}},
		{"unwanted families", "b 1\na 2\nbb{a=\"1\"} 3\n", []flat{{"a", 2}}},
		{"suffixes of a family", "a_bucket{le=\"1\"} 1\na_sum 2\na_count 3\na_total 4\na_created 5\na_other 6\n",
			[]flat{{`a_bucket{le="1"}`, 1}, {"a_sum", 2}, {"a_count", 3}, {"a_total", 4}, {"a_created", 5}}},
		{"timestamps", "a 1 1395066363000\na{t=\"f\"} 2 1395066363.123\n", []flat{{"a", 1}, {`a{t="f"}`, 2}}},
		{"exemplars", "a_bucket{le=\"1\"} 17 # {trace=\"x } y\"} 0.67 1.5\na_total 3 1.5 # {} 1\n", []flat{{`a_bucket{le="1"}`, 17}, {"a_total", 3}}},
		{"OpenMetrics", "# TYPE a counter\n# UNIT a tokens\na_total{e=\"0\"} 4\n# EOF\n", []flat{{`a_total{e="0"}`, 4}}},
		{"OpenMetrics without a last newline", "a_total 4\n# EOF", []flat{{"a_total", 4}}},
		{"carriage returns", "# TYPE a gauge\r\na 1\r\na{x=\"y\"} 2\r\n", []flat{{"a", 1}, {`a{x="y"}`, 2}}},
		{"blanks everywhere", "  a\t{ x = \"y\" , z=\"1\", }   2  \n\n \n a 3\n", []flat{{`a{x="y",z="1"}`, 2}, {"a", 3}}},
		{"empty label set", "a{} 1\n", []flat{{"a", 1}}},
		{"a query in a value", `a{x="` + strings.Repeat(`y=\"z\"&`, 300) + `"} 1` + "\n", []flat{{`a{x="` + strings.Repeat(`y=\"z\"&`, 300) + `"}`, 1}}},
		{"braces, quotes and commas in values", `a{x="}{,=\" \\ \n",y="#"} 1` + "\n", []flat{{`a{x="}{,=\" \\ \n",y="#"}`, 1}}},
		{"label order", "a{y=\"2\",x=\"1\"} 1\n", []flat{{`a{x="1",y="2"}`, 1}}},
		{"quoted name", "{\"a\",x=\"1\"} 1\n{\"a\"} 2\n{\"b\"} 3\n", []flat{{`a{x="1"}`, 1}, {"a", 2}}},
		{"quoted name between blanks", "{ \"a\" , x = \"1\" } 1\n{\t\"b\"} 3\n", []flat{{`a{x="1"}`, 1}}},
		{"empty label values", "a{x=\"\",y=\"2\"} 1\na{x=\"1\",z=\"\"} 2\na{x=\"\"} 3\n", []flat{{`a{y="2"}`, 1}, {`a{x="1"}`, 2}, {"a", 3}}},
		{"values", "a{v=\"1\"} NaN\na{v=\"2\"} +Inf\na{v=\"3\"} -Inf\na{v=\"4\"} 1.79e+09\na{v=\"5\"} -0\na{v=\"6\"} 1e-400\n",
			[]flat{{`a{v="1"}`, math.NaN()}, {`a{v="2"}`, math.Inf(1)}, {`a{v="3"}`, math.Inf(-1)}, {`a{v="4"}`, 1.79e9}, {`a{v="5"}`, 0}, {`a{v="6"}`, 0}}},
		{"UTF-8", "a{x=\"Größe 模型\"} 1\n", []flat{{`a{x="Größe 模型"}`, 1}}},
		{"faults of unwanted families", "b{ 1\nb{x=\"\xff\"} x\nb\na 1\n" + "b{x=\"" + strings.Repeat("y", 1<<20) + "\"} 1\n", []flat{{"a", 1}}},
		{"nothing wanted", "b 1\n", nil},
		{"comments alone", "# nothing yet\n", nil},
		{"byte order mark", "\ufeffa 1\n", []flat{{"a", 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f Families
			filter := familyFilter("a")
			for _, round := range []string{"first", "second"} { // the second finds every series known
				if err := Parse([]byte(tt.page), filter, &f); err != nil {
					t.Fatalf("%s: %v", round, err)
				}
				if diff := cmp.Diff(tt.want, flatten(&f), cmpopts.EquateNaNs()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", round, diff)
				}
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	many := &strings.Builder{}
	for i := range maxSamples + 1 {
		fmt.Fprintf(many, "a{i=\"%d\"} 1\n", i)
	}
	tests := []struct {
		name, page string
		is         error
		says       string
	}{
		{"empty", "", ErrNotMetrics, "empty"},
		{"white space", " \r\n\n", ErrNotMetrics, "empty"},
		{"HTML", "<!DOCTYPE html><html>", ErrNotMetrics, "HTML"},
		{"HTML behind white space", "\n  <html>", ErrNotMetrics, "HTML"},
		{"JSON object", `{"detail":"Not Found"}`, ErrNotMetrics, "JSON"},
		{"JSON array", `[1,2]`, ErrNotMetrics, "JSON"},
		{"binary", "\x1f\x8b\x08\x00\x00", ErrNotMetrics, "binary"},
		{"truncated in a name", "a 1\na{x=\"y\"} 2\na_tot", ErrTruncated, "line 3"},
		{"truncated in labels", "a 1\na{x=\"", ErrTruncated, "line 2"},
		{"truncated in a value", "a 1\na_total 41", ErrTruncated, "line 2"},
		{"truncated in what is unwanted", "a 1\nb{x=", ErrTruncated, "line 2"},
		{"truncated in a comment", "a 1\n# TYPE b ga", ErrTruncated, "line 2"},
		{"no value", "a\n", ErrMalformed, "line 1"},
		{"no value behind labels", "a 1\na{x=\"1\"}\n", ErrMalformed, "line 2"},
		{"value is not a number", "a one\n", ErrMalformed, `"one"`},
		{"hexadecimal value", "a 0x1p4\n", ErrMalformed, "0x1p4"},
		{"value with underscores", "a 1_000\n", ErrMalformed, "1_000"},
		{"timestamp is not a number", "a 1 yesterday\n", ErrMalformed, "yesterday"},
		{"unterminated labels", "a{x=\"1\" 2\n", ErrMalformed, "line 1"},
		{"label without quotes", "b 1\na{x=1} 2\n", ErrMalformed, "line 2"},
		{"label twice", "a{x=\"1\",x=\"2\"} 2\n", ErrMalformed, "duplicate label"},
		{"label without a value", "a{x} 2\n", ErrMalformed, "label name"},
		{"labels without a comma", "a{x=\"1\"y=\"2\"} 2\n", ErrMalformed, "label value"},
		{"reserved label", "a{__name__=\"b\"} 2\n", ErrMalformed, "label name"},
		{"unknown escape", "a{x=\"\\t\"} 2\n", ErrMalformed, "escape"},
		{"two names", "a{\"b\"} 2\n", ErrMalformed, "after label name"},
		{"label name is none", "a{1=\"2\"} 2\n", ErrMalformed, ""},
		{"broken UTF-8", "a 1\na{x=\"\xff\"} 2\n", ErrMalformed, "line 2"},
		{"line too long", "a{x=\"" + strings.Repeat("y", maxLineBytes) + "\"} 1\n", ErrMalformed, "65536 bytes"},
		{"too many labels", "a{" + strings.Repeat("b=\"\",", maxLabels+1) + "} 1\n", ErrMalformed, "256 labels"},
		{"too many samples", many.String(), ErrMalformed, "65536 samples"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f Families
			filter := familyFilter("a")
			if err := Parse([]byte("a{old=\"1\"} 1\n"), filter, &f); err != nil {
				t.Fatal(err)
			}
			err := Parse([]byte(tt.page), filter, &f)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %.200v, want %v that says %q", err, tt.is, tt.says)
			}
			if len(f.Samples) != 0 {
				t.Errorf("%d samples of a page that could not be read", len(f.Samples))
			}
			if err := Parse([]byte("a{old=\"1\"} 2\n"), filter, &f); err != nil || len(f.Samples) != 1 || f.Samples[0].Value != 2 {
				t.Errorf("the next page: %v, %v", f.Samples, err)
			}
		})
	}
}

func TestDuplicatesKeepTheFirst(t *testing.T) {
	page := "a{x=\"1\",y=\"2\"} 1\na{x=\"3\"} 5\na{y=\"2\",x=\"1\"} 2\na{x=\"1\",y=\"2\"} 3\n"
	var f Families
	for range 2 {
		if err := Parse([]byte(page), familyFilter("a"), &f); err != nil {
			t.Fatal(err)
		}
		want := []flat{{`a{x="1",y="2"}`, 1}, {`a{x="3"}`, 5}}
		if diff := cmp.Diff(want, flatten(&f)); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
		if len(f.Duplicates) != 2 || f.Duplicates[0] != f.Samples[0].Series || f.Duplicates[1] != f.Samples[0].Series {
			t.Errorf("duplicates %v, want the first series twice", f.Duplicates)
		}
	}
}

// A label without a value counts as absent, as in Prometheus.
func TestEmptyLabelsMakeNoOtherSeries(t *testing.T) {
	var f Families
	if err := Parse([]byte("a{x=\"1\"} 1\na{x=\"1\",pod=\"\"} 2\n"), familyFilter("a"), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Samples) != 1 || f.Samples[0].Value != 1 || len(f.Duplicates) != 1 {
		t.Errorf("samples %v, duplicates %v", flatten(&f), f.Duplicates)
	}
}

func TestSeriesKeepTheirIdentity(t *testing.T) {
	var f Families
	filter := familyFilter("a")
	if err := Parse([]byte("a{x=\"1\"} 1\n"), filter, &f); err != nil {
		t.Fatal(err)
	}
	first := f.Samples[0].Series
	if err := Parse([]byte("a{x=\"2\"} 1\na{ x = \"1\" } 2\n"), filter, &f); err != nil {
		t.Fatal(err)
	}
	if f.Samples[1].Series != first {
		t.Error("the same series written with blanks is another one")
	}
}

// TestMemoryIsBoundedWhereLabelsChangeForever is a server that puts a new label
// on every page.
func TestMemoryIsBoundedWhereLabelsChangeForever(t *testing.T) {
	var f Families
	filter := familyFilter("a")
	most := 0
	for page := range 2000 {
		text := fmt.Sprintf("a{p=\"%d\"} 1\na{q=\"%d\"} 1\n", page, page)
		if err := Parse([]byte(text), filter, &f); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(f.known), len(f.same))
	}
	if most > 300 {
		t.Errorf("%d series are remembered for pages of two", most)
	}
}

func TestManyLabels(t *testing.T) {
	var text strings.Builder
	const n = maxLabels
	text.WriteString("a{")
	for i := range n {
		fmt.Fprintf(&text, `l%03d=",}\\\"%d",`, i, i)
	}
	inner := text.String()
	var f Families
	if err := Parse([]byte(inner+"} 1\n"), familyFilter("a"), &f); err != nil {
		t.Fatal(err)
	}
	if got := len(f.Samples[0].Labels); got != n {
		t.Fatalf("%d labels, want %d", got, n)
	}
	for i, l := range f.Samples[0].Labels {
		if want := (Label{fmt.Sprintf("l%03d", i), fmt.Sprintf(`,}\"%d`, i)}); l != want {
			t.Fatalf("label %d is %q, want %q", i, l, want)
		}
	}
	if err := Parse([]byte(inner+"l000=\"again\"} 1\n"), familyFilter("a"), &f); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "l000") {
		t.Errorf("error %v, want ErrMalformed about the label that comes twice", err)
	}
}

func TestNames(t *testing.T) {
	page := "# HELP x y\n# TYPE declared gauge\nnode_load1 0.5\nnode_load1{a=\"b\"} 1\nnot a sample at all\ngo_threads 7\n{\"http.server\\u001b\"} 1\nlast 1\n"
	got := Names([]byte(page), 3)
	if want := []string{"declared", "node_load1", "go_threads"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Names([]byte("Internal Server Error\nplain text 5 words\n"), 9); len(got) != 0 {
		t.Errorf("prose has the families %q", got)
	}
	for _, name := range Names([]byte("{\"esc\x1b[31m\"} 1\n# TYPE \x1b[31mx gauge\n"), 9) {
		if strings.ContainsRune(name, 0x1b) {
			t.Errorf("name %q would reach a terminal as it is", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(recording(f))
	for _, seed := range []string{
		"a 1\n", "a{x=\"y\"} 1 2 # {z=\"1\"} 3\n# EOF\n", "{\"a\",x=\"1\"} NaN\n", "a{x=\"\\\"\\n\\\\\"} +Inf\r\n",
		"# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n", "<html>", "{}", "a{,} 1\n", "a{x=\"1\",x=\"2\"} 1\n", "a\x00 1\n", "{} 1\n", "{\"\"} 1\n",
		"a{x=\"1\"} 1\na{x=\"1\"} 2\n", "x{__name__=\"a\"} 1\n",
		"{x=\"y\"} 1\n", "x{\"a\"} 1\n",
	} {
		f.Add([]byte(seed))
	}
	shared, err := filepath.Glob(filepath.Join("..", "..", "shared", "data", "vllm-metrics", "*.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range shared {
		if page, err := os.ReadFile(path); err == nil {
			f.Add(page)
		}
	}
	filter := familyFilter("a", "vllm:num_requests_running", "vllm:e2e_request_latency_seconds")
	f.Fuzz(func(t *testing.T, page []byte) {
		Names(page, 100)
		for _, use := range []*Filter{filter, nil} {
			var cold, warm Families
			err := Parse(page, use, &cold)
			if err := Parse([]byte("a 1\na{x=\"y\"} 1\n"), use, &warm); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what was seen before must not change what is read
				if again := Parse(page, use, &warm); (again == nil) != (err == nil) {
					t.Fatalf("cold: %v; warm: %v", err, again)
				}
				if diff := cmp.Diff(flatten(&cold), flatten(&warm), cmpopts.EquateNaNs()); diff != "" {
					t.Fatalf("(-cold +warm):\n%s", diff)
				}
			}
			if err != nil && len(cold.Samples) > 0 {
				t.Fatalf("samples in spite of %v", err)
			}
			seen := map[string]bool{}
			for _, s := range cold.Samples {
				if name := s.String(); seen[name] {
					t.Fatalf("%s is there twice", name)
				} else {
					seen[name] = true
				}
			}
		}
	})
}

// BenchmarkParse reads a real page of 53 kB whole, unfiltered: the upper end.
// What vLLM needs of it is measured where it is read.
func BenchmarkParse(b *testing.B) {
	page := recording(b)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(page)))
		for b.Loop() {
			var f Families
			if err := Parse(page, nil, &f); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(page)))
		var f Families
		for b.Loop() {
			if err := Parse(page, nil, &f); err != nil {
				b.Fatal(err)
			}
		}
	})
}
