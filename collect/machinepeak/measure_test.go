package machinepeak

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestMeasure holds that the figures are there, hang together, and are of the order of
// a computer's. It holds no time and no figure of this machine.
func TestMeasure(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	r, err := Measure(context.Background(), Options{Duration: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("GOMAXPROCS was %d and is %d", before, after)
	}
	if !strings.HasPrefix(r.From, "measured") || r.Threads < 1 || len(r.ByThreads) < 1 {
		t.Fatalf("no measured roof: %+v", r)
	}
	// From a small board to a server with high-bandwidth memory.
	if r.BytesPerSecond < 1e8 || r.BytesPerSecond > 1e14 {
		t.Errorf("%v bytes a second", r.BytesPerSecond)
	}
	if (r.FlopsPerSecond > 0) != (r.FlopsOf != "") || (r.Int8PerSecond > 0) != (r.Int8Of != "") {
		t.Errorf("a rate without a name of what it counts, or the other way: %+v", r)
	}
	if r.FlopsPerSecond > 0 && (r.FlopsPerSecond < 1e8 || r.FlopsPerSecond > 1e15) {
		t.Errorf("%v operations a second", r.FlopsPerSecond)
	}
	found := false
	for i, p := range r.ByThreads {
		if i > 0 && p.Threads <= r.ByThreads[i-1].Threads {
			t.Errorf("not ascending: %+v", r.ByThreads)
		}
		found = found || p.Threads == r.Threads && p.BytesPerSecond == r.BytesPerSecond
	}
	if !found {
		t.Errorf("the roof's own threads are not among %+v", r.ByThreads)
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Measure(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestMeasureRefusesThreads(t *testing.T) {
	for _, n := range []int{-1, maxThreads + 1} {
		if _, err := Measure(context.Background(), Options{Threads: n}); err == nil {
			t.Errorf("%d threads", n)
		}
	}
}

func TestThreadCounts(t *testing.T) {
	for _, c := range []struct {
		asked, cpus int
		want        []int
	}{
		{1, 1, []int{1}},
		{1, 2, []int{1, 2}},
		{4, 2, []int{1, 2, 4}},
		{5, 8, []int{1, 2, 3, 4, 5, 6, 8}},
		{16, 20, []int{1, 2, 3, 4, 6, 8, 12, 16, 20}},
	} {
		if got := threadCounts(c.asked, c.cpus); !slices.Equal(got, c.want) {
			t.Errorf("%d of %d: %v, want %v", c.asked, c.cpus, got, c.want)
		}
	}
}

// TestKernelsReadAllOfIt holds that a reading kernel ends where it was told to: one that
// runs on leaves the mapping and dies.
func TestKernelsReadAllOfIt(t *testing.T) {
	b, release, err := pages(chunk)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	k := kernelsHere()
	for _, n := range []uintptr{1024, 4096, chunk} {
		k.read(unsafe.Pointer(&b[chunk-int(n)]), n)
		readWords(unsafe.Pointer(&b[chunk-int(n)]), n)
	}
	for _, of := range []kernel{k.flops, k.int8} {
		if of.run != nil {
			of.run(1)
		}
	}
}

func TestOperationsWithoutAKernel(t *testing.T) {
	m := machine{cpus: []int{0}, kernels: plain()}
	if r := m.best(context.Background(), 1, time.Millisecond, operations(m.kernels.flops)); r.perSecond != 0 || r.onCPU != 1 {
		t.Errorf("%+v without a kernel", r)
	}
}

// TestTwoThreadsOnOneCPU holds that threads which share a CPU count as many as they are
// CPUs, and not as disturbed by each other.
func TestTwoThreadsOnOneCPU(t *testing.T) {
	cpus, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	m := machine{cpus: cpus[:1], kernels: kernelsHere()}
	one := func(int, int) work { return func() float64 { readWords(unsafe.Pointer(&sink), 64); return 1 } }
	if p := m.rate(2, 20*time.Millisecond, one); p.perSecond <= 0 || p.onCPU <= 0 || p.onCPU > 1.1 && threadTime() >= 0 {
		t.Errorf("two threads on one CPU: %+v", p)
	}
}

// BenchmarkKernels tells the rates of one thread: MB/s of reading, and operations.
func BenchmarkKernels(b *testing.B) {
	k := kernelsHere()
	m := machine{cpus: []int{0}, kernels: k}
	if err := m.allocate(1); err != nil {
		b.Fatal(err)
	}
	defer m.free()
	b.Run("read", func(b *testing.B) {
		w := m.read(0, 1)
		b.SetBytes(chunk)
		for b.Loop() {
			w()
		}
	})
	b.Run("read words", func(b *testing.B) {
		p := plain()
		at := 0
		b.SetBytes(chunk)
		for b.Loop() {
			p.read(unsafe.Pointer(&m.buffer[at]), chunk)
			at = (at + chunk) % len(m.buffer)
		}
	})
	for name, of := range map[string]kernel{k.flopsOf: k.flops, k.int8Of: k.int8} {
		if of.run == nil {
			continue
		}
		b.Run(name, func(b *testing.B) {
			amount := 0.0
			for b.Loop() {
				of.run(loops)
				amount += loops * of.each
			}
			b.ReportMetric(math.Round(amount/b.Elapsed().Seconds()/1e9), "GFLOP/s")
		})
	}
}
