package document

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// FleetSchema names the document that WriteFleet writes.
const FleetSchema = "rooftop.fleet/v1"

type fleetServer struct {
	Name           string                 `json:"name"`
	Deployment     string                 `json:"deployment"`
	Unread         string                 `json:"unread"`
	Target         engine.Target          `json:"target"`
	Windows        engine.WindowCounts    `json:"windows"`
	Outcome        engine.Outcome         `json:"outcome"`
	Condition      *condition             `json:"condition"`
	Recommendation *engine.Recommendation `json:"recommendation"`
	Gain           fleet.Span             `json:"output_gain"`
	Saves          fleet.Span             `json:"saves_usd_per_hour"`
	Measured       Object                 `json:"measured"`
	Doubt          string                 `json:"doubt"`
}

// WriteFleet writes servers, in their order, as one rooftop.fleet/v1 document.
func WriteFleet(w io.Writer, list []fleet.Server) error {
	servers := make([]fleetServer, len(list))
	for i := range list {
		s := &list[i]
		servers[i] = fleetServer{s.Name, s.Deployment, s.Unread, s.Target, s.Windows, s.Outcome, conditionOf(&s.Diagnosis), s.Recommendation, s.Gain(), s.Waste(), measured(&s.Diagnosis), s.Doubt}
	}
	return Write(w, &struct {
		Schema   string          `json:"schema"`
		Servers  []fleetServer   `json:"servers"`
		Findings []fleet.Finding `json:"findings"`
	}{FleetSchema, servers, fleet.Findings(list)})
}
