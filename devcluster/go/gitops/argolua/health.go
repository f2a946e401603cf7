package argolua

import (
	"encoding/json"
	"fmt"
	"slices"
)

// InvalidStatus is the message of a health whose script returned a status that Argo CD does not know.
const InvalidStatus = "Lua returned an invalid health status"

// Health of an object; without a status, Argo CD takes a hook for healthy.
type Health struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

var statuses = []string{"Unknown", "Progressing", "Suspended", "Healthy", "Degraded", "Missing"}

// RunHealth runs a health script.
func RunHealth(script string, obj map[string]any) (Health, error) {
	encoded, isTable, err := run(script, obj, nil)
	if err != nil || !isTable || isEmpty(encoded) {
		return Health{}, err
	}
	var health Health
	if err := json.Unmarshal(encoded, &health); err != nil {
		return Health{}, fmt.Errorf("%s is no health: %w", encoded, err)
	}
	if !slices.Contains(statuses, health.Status) {
		return Health{Status: "Unknown", Message: InvalidStatus}, nil
	}
	return health, nil
}
