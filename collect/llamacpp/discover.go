package llamacpp

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

// Discover requests what a server reports about itself: /props, once. It lists what the server does not
// report, with the reason and the effect. An error means that the context ended.
func Discover(ctx context.Context, client *collect.Client) (facts.ServerAnswers, []engine.Missing, error) {
	var a facts.ServerAnswers
	body, err := client.Get(ctx, "/props", "application/json", nil)
	if err == nil {
		a, err = answers(body)
	}
	if err != nil {
		return a, []engine.Missing{{What: "/props", Reason: err.Error(), Effect: "build, model and context of a slot are not known from the server"}}, ctx.Err()
	}
	return a, nil, ctx.Err()
}

// answers reads what /props answered. The chat template and the rest of it are not kept.
func answers(body []byte) (facts.ServerAnswers, error) {
	var props struct {
		Build    string `json:"build_info"`
		Alias    string `json:"model_alias"`
		Path     string `json:"model_path"`
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := json.Unmarshal(body, &props); err != nil || props.Build == "" {
		return facts.ServerAnswers{}, errors.New("/props answered without build_info")
	}
	build, _, _ := strings.Cut(props.Build, "-") // b11549-1a2b3c4d
	a := facts.ServerAnswers{Version: enginepage.Clip(build), Root: enginepage.Clip(props.Path), MaxModelLen: max(0, props.Settings.Context)}
	if a.Model = enginepage.Clip(props.Alias); a.Model == "" || a.Model == a.Root {
		a.Model = filepath.Base(a.Root)
	}
	return a, nil
}
