package proc

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// act makes the test binary play a part in a process tree, by the words of
// [roleVariable]. Each part ends when its stdin does.
func act(words string) int {
	if words == "churn" {
		return actChurn()
	}
	return actServer()
}

// actServer listens on loopback and writes its port.
func actServer() int {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer l.Close()
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	untilEOF()
	return 0
}

func untilEOF() { _, _ = bufio.NewReader(os.Stdin).ReadString(0) }

// threadsUpTo gives the process at least n threads, the runtime's own included.
func threadsUpTo(n int) {
	for {
		if tasks, err := os.ReadDir("/proc/self/task"); err != nil || len(tasks) >= n {
			return
		}
		ready := make(chan bool)
		go func() {
			runtime.LockOSThread()
			close(ready)
			select {}
		}()
		<-ready
	}
}

// What a churning server holds.
const (
	churnMB      = 300
	churnThreads = 100
)

// actChurn holds memory and threads, works a part of the time, and starts children
// over and over, each with a child of its own: some for a few milliseconds, some
// for longer than it takes to find them.
func actChurn() int {
	memory := make([]byte, churnMB<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	threadsUpTo(churnThreads)
	loops := []int{300, 3_000, 30_000, 300_000}
	for lane := range 2 {
		go func() {
			for n := lane; ; n++ {
				// The shell's own loop, and the same in a child of it.
				script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); done", loops[n%len(loops)])
				_ = exec.Command("sh", "-c", "("+script+"); "+script).Run()
			}
		}()
	}
	for n := 0; ; n++ {
		for until := time.Now().Add(15 * time.Millisecond); time.Now().Before(until); {
			memory[n*64%len(memory)]++
		}
		time.Sleep(35 * time.Millisecond)
	}
}
