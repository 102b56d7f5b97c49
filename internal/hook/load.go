package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// LoadFile reads the TaskHook and ClusterTaskHook documents of a YAML (or JSON) file for use on this machine. name is
// the file's path, for messages and as the place that relative files in it start from. The error lists everything that
// is wrong in any document, a line each: "hooks.yaml:7: TaskHook lineage: spec.http.url: ...".
func LoadFile(name string, data []byte) ([]Hook, error) {
	var (
		hooks  []Hook
		faults []error
	)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: is not YAML: %w", name, err))
			break // the decoder cannot go on behind a fault
		}
		if empty(&doc) {
			continue
		}
		h, err := loadDocument(name, &doc)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		hooks = append(hooks, h)
	}
	if len(faults) == 0 && len(hooks) == 0 {
		faults = append(faults, fmt.Errorf("%s: has no TaskHook or ClusterTaskHook document", name))
	}
	if len(faults) == 0 {
		faults = append(faults, checkNames(hooks)...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return hooks, nil
}

// loadDocument reads one document.
func loadDocument(file string, doc *yaml.Node) (Hook, error) {
	root := doc
	if doc.Kind == yaml.DocumentNode {
		root = doc.Content[0]
	}
	at := file + ":" + strconv.Itoa(max(root.Line, 1))
	var value any
	if err := doc.Decode(&value); err != nil {
		return Hook{}, fmt.Errorf("%s: %w", at, err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return Hook{}, fmt.Errorf("%s: has a key that is not a text: %w", at, err)
	}
	taskHook, err := v1alpha1.DecodeTaskHook(data)
	if err != nil {
		return Hook{}, located(file, root, title(value), err)
	}
	h := Hook{TaskHook: *taskHook, Origin: at}
	ps := Validate(&h.TaskHook)
	ps = append(ps, checkLocal(&h.Spec)...)
	if err := ps.Err(); err != nil {
		return Hook{}, located(file, root, title(value), err)
	}
	return h, nil
}

// title is what a document calls itself: "TaskHook lineage".
func title(value any) string {
	m, _ := value.(map[string]any)
	kind, _ := m["kind"].(string)
	meta, _ := m["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	text := strings.TrimSpace(kind + " " + name)
	if text == "" {
		return "document"
	}
	return text
}

// located puts file and line before every problem.
func located(file string, root *yaml.Node, title string, err error) error {
	var ps v1alpha1.Problems
	if !errors.As(err, &ps) {
		return fmt.Errorf("%s: %s: %w", file, title, err)
	}
	lines := make([]error, len(ps))
	for i, p := range ps {
		lines[i] = fmt.Errorf("%s:%d: %s: %s", file, lineOf(root, p.Path), title, p)
	}
	return errors.Join(lines...)
}

// lineOf finds the line of a path such as "spec.matchConditions[0].expression", or of the nearest thing around it.
func lineOf(node *yaml.Node, path string) int {
	line := max(node.Line, 1)
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for _, step := range steps {
		var next *yaml.Node
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == step {
					next, line = node.Content[i+1], node.Content[i].Line
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
				next, line = node.Content[i], node.Content[i].Line
			}
		}
		if next == nil {
			return line
		}
		node = next
	}
	return line
}

// empty says whether a document has nothing in it but comments.
func empty(doc *yaml.Node) bool {
	if doc.Kind == yaml.DocumentNode {
		return len(doc.Content) == 0 || empty(doc.Content[0])
	}
	return doc.Kind == 0 || (doc.Kind == yaml.ScalarNode && doc.Tag == "!!null")
}
