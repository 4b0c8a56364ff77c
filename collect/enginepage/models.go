package enginepage

import (
	"encoding/json"
	"errors"

	"github.com/rooftop-dev/rooftop/engine/facts"
)

// PathModels lists the served models.
const PathModels = "/v1/models"

// ParseModels reads the first base model of an answer of [PathModels]. The other entries are its LoRA adapters, which have
// it as their parent, or further names of it.
func ParseModels(body []byte, to *facts.ServerAnswers) error {
	var answer struct {
		Data []struct {
			ID          string  `json:"id"`
			Root        string  `json:"root"`
			Parent      *string `json:"parent"`
			MaxModelLen *int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return errors.New("/v1/models answered with something other than a list of models")
	}
	for _, m := range answer.Data {
		if m.ID == "" || (m.Parent != nil && *m.Parent != "") {
			continue
		}
		to.Model, to.Root = Clip(m.ID), Clip(m.Root)
		if m.MaxModelLen != nil && *m.MaxModelLen > 0 {
			to.MaxModelLen = *m.MaxModelLen
		}
		return nil
	}
	return errors.New("/v1/models lists no model")
}
