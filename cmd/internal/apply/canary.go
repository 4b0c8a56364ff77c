package apply

import (
	"context"

	"github.com/rooftop-dev/rooftop/engine"
)

// answers are those to the canary prompts.
type answers struct{}

func (s *owned) askBefore(context.Context, engine.Apply) answers { return answers{} }

func (s *owned) askAfter(context.Context, answers) *engine.Canary { return nil }

func (h *Hook) askBefore(context.Context, engine.Apply) answers { return answers{} }

func (h *Hook) askAfter(context.Context, answers) *engine.Canary { return nil }
