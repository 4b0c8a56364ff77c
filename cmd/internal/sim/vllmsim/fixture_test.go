package vllmsim_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// start is when the simulated process of the tests began.
var start = time.Unix(1795223534, 540_000_000)

// tiny is the launch of the recorded 0.32.0 pages: a small model on a CPU.
func tiny(change func(*settings.Settings)) *settings.Settings {
	s := &settings.Settings{
		Argv: []string{"serve", "tiny"}, Release: "0.32", Served: []string{"rooftop-tiny"}, GPU: catalog.GPU{Name: "NVIDIA L4"},
		Config:               core.Config{MaxModelLen: 4096, MaxNumSeqs: 4, BlockSize: 128, PrefixCaching: true},
		GPUMemoryUtilization: 0.92, KVCacheMemoryBytes: 1 << 30,
		ComputeDType: catalog.BF16, KVDType: catalog.BF16, DataParallel: 1, APIServers: 1, LogStats: true, Scale: 1,
	}
	if change != nil {
		change(s)
	}
	return s
}

// realPage returns a page that a real 0.32.0 wrote.
func realPage(t *testing.T, name string) string {
	t.Helper()
	return unzip(t, filepath.Join("..", "..", "..", "..", "collect", "vllm", "testdata", name))
}

func unzip(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// lastWord is the number of a sample.
var lastWord = regexp.MustCompile(` [^ ]+$`)

// unread matches families of the process and of the front end that a simulated page leaves out.
var unread = regexp.MustCompile(`^(# \w+ )?(python_|process_(virtual|resident|open|max)|http_(request_size|response_size|request_duration))`)

// unreadLabel matches labels of cache_config_info that a simulated page leaves out.
var unreadLabel = regexp.MustCompile(`\b(_block_size_resolved|cache_hit_\w+|calculate_\w+|cpu_\w+|effective_\w+|enable_mamba_\w+|hash_block_size|is_attention_free|` +
	`kv_(cache_dtype|cache_layout|cache_memory|offloading|sharing)\w*|mamba_\w+|prefix_\w+|replayssm_\w+|skip_\w+|swa_\w+|swap_space|use_\w+|user_\w+)="[^"]*",?`)

// shape returns the lines of a page without the numbers of its samples and without unread families and labels.
func shape(body string) (lines []string) {
	for l := range strings.Lines(body) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case unread.MatchString(l):
		case strings.HasPrefix(l, "#"):
			lines = append(lines, l)
		default:
			l = lastWord.ReplaceAllString(l, "")
			if strings.HasPrefix(l, "vllm:cache_config_info") {
				l = strings.Replace(unreadLabel.ReplaceAllString(l, ""), ",}", "}", 1)
			}
			lines = append(lines, l)
		}
	}
	return lines
}

func write(b *vllmsim.Book) string { return string(b.Append(nil, time.Minute)) }
