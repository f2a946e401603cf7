package argolua

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Action is one that a discovery script offers.
type Action struct {
	Name        string `json:"name"`
	Disabled    bool   `json:"disabled,omitempty"`
	IconClass   string `json:"iconClass,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
	Params      []any  `json:"params,omitempty"`
}

// Impact is what an action script does to one object.
type Impact struct {
	Operation string                     `json:"operation"`
	Resource  *unstructured.Unstructured `json:"resource"`
}

var errNoTable = errors.New("expect table output from Lua script, not nil")

// RunDiscovery runs a discovery script; the actions are in the order of their names.
func RunDiscovery(script string, obj map[string]any) ([]Action, error) {
	encoded, isTable, err := run(script, obj, nil)
	switch {
	case err != nil:
		return nil, err
	case !isTable:
		return nil, errNoTable
	case isEmpty(encoded):
		return []Action{}, nil
	}
	var offered map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &offered); err != nil {
		return nil, fmt.Errorf("actions are a table by name: %w", err)
	}
	actions := make([]Action, 0, len(offered))
	for name, options := range offered {
		action := Action{Name: name}
		if !isEmpty(options) {
			if err := json.Unmarshal(options, &action); err != nil {
				return nil, fmt.Errorf("action %s: %w", name, err)
			}
		}
		actions = append(actions, action)
	}
	slices.SortFunc(actions, func(a, b Action) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return actions, nil
}

// RunAction runs an action script, which returns the changed object or a list of objects and operations.
func RunAction(script string, obj map[string]any, params map[string]string) ([]Impact, error) {
	encoded, isTable, err := run(script, obj, params)
	if err != nil {
		return nil, err
	}
	if !isTable {
		return nil, errNoTable
	}
	if encoded[0] != '[' {
		changed := &unstructured.Unstructured{}
		if err := changed.UnmarshalJSON(encoded); err != nil {
			return nil, err
		}
		return []Impact{{"patch", withEmptyObjects(changed, obj)}}, nil
	}
	var impacts []Impact
	if err := json.Unmarshal(encoded, &impacts); err != nil {
		return nil, err
	}
	for i, impact := range impacts {
		switch {
		case impact.Resource == nil:
			return nil, fmt.Errorf("item %d of the list has no resource", i+1)
		case impact.Operation == "patch":
			impacts[i].Resource = withEmptyObjects(impact.Resource, obj)
		case impact.Operation != "create":
			return nil, fmt.Errorf("unsupported operation: %q", impact.Operation)
		}
	}
	return impacts, nil
}

// withEmptyObjects undoes what the way through Lua did to empty objects, where the object had them before: they came back as empty arrays.
func withEmptyObjects(changed *unstructured.Unstructured, before map[string]any) *unstructured.Unstructured {
	for key, value := range changed.Object {
		changed.Object[key] = restored(value, before[key])
	}
	return changed
}

func restored(value, before any) any {
	switch value := value.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			for key := range value {
				value[key] = restored(value[key], before[key])
			}
		}
	case []any:
		if _, wasObject := before.(map[string]any); wasObject && len(value) == 0 {
			return map[string]any{}
		}
		if before, ok := before.([]any); ok {
			for i := range min(len(value), len(before)) {
				value[i] = restored(value[i], before[i])
			}
		}
	}
	return value
}
