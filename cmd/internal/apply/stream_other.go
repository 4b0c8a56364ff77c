//go:build !linux

package apply

import (
	"os"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

func openStream(int, int, string, launcher.Owner) (*os.File, error) { return nil, errStream }
