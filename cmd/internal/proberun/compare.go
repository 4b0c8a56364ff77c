package proberun

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine/capture"
	probepage "github.com/rooftop-dev/rooftop/engine/page/probe"
)

// maxDocument limits the size of a document: an hour of a large tree at 50 ms.
const maxDocument = 1 << 30

// Compare compares the documents of two probes and prints the differences.
func Compare(w *cli.World, out *cli.Output, a, b string) error {
	var sides [2]*capture.Record
	for i, path := range []string{a, b} {
		p, err := readProbe(path)
		if err != nil {
			return err
		}
		sides[i] = p
	}
	result := probepage.Compare(cli.Version(), a, b, sides[0], sides[1])
	if err := cli.Print(w, out, result, cli.Text((*probepage.Comparison).Page), document.WriteProbeCompare); err != nil {
		return err
	}
	if len(result.Refused) > 0 {
		return cli.Exit(cli.ExitNothing)
	}
	return nil
}

func readProbe(path string) (*capture.Record, error) {
	f, err := cli.Open(path)
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, cli.Usagef("%w", err)
	case info.IsDir():
		return nil, cli.Usagef("%s is a directory", path)
	case info.Size() > maxDocument:
		return nil, cli.Usagef("%s is larger than %d MiB", path, maxDocument>>20)
	}
	p, err := document.ReadProbe(f)
	if err != nil {
		return nil, cli.Usagef("%w", fmt.Errorf("%s: %w", path, err))
	}
	return p, nil
}
