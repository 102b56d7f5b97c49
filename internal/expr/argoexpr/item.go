package argoexpr

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"
)

// ItemName names a loop's item as Argo does in names of nodes: texts as they are, with what JSON escapes escaped (a line
// break is \n); maps as "key:value,key:value" in order; lists as "[a b c]". Parentheses are left out.
func (l *Language) ItemName(item any) string {
	var name string
	switch t := item.(type) {
	case map[string]any:
		fields := make([]string, 0, len(t))
		for k, v := range t {
			fields = append(fields, k+":"+itemText(v))
		}
		sort.Strings(fields)
		name = strings.Join(fields, ",")
	case []any:
		elements := make([]string, len(t))
		for i, v := range t {
			elements[i] = itemText(v)
		}
		name = "[" + strings.Join(elements, " ") + "]"
	default:
		name = itemText(item)
	}
	return strings.NewReplacer("(", "", ")", "").Replace(name)
}

// itemText is the JSON of a value, without the quotes of a text.
func itemText(v any) string {
	n, err := normalise(v)
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(n); err != nil {
		return ""
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if _, ok := n.(string); ok && len(text) >= 2 {
		return text[1 : len(text)-1]
	}
	return text
}
