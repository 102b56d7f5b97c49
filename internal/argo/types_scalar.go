package argo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// AnyString is a text that manifests may also write as a number or a boolean: value: 3 is the text "3".
type AnyString string

// UnmarshalJSON accepts a string, a number or a boolean.
func (s *AnyString) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return fmt.Errorf("no value")
	}
	switch data[0] {
	case '"':
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*s = AnyString(text)
	case 't', 'f':
		*s = AnyString(data)
	case 'n':
	case '{', '[':
		return fmt.Errorf("must be a string, a number or a boolean")
	default:
		*s = AnyString(numberText(string(data)))
	}
	return nil
}

// numberText writes a JSON number without exponent, as Argo does.
func numberText(n string) string {
	if _, err := strconv.ParseInt(n, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return n
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// text gives the value, or "" for none.
func (s *AnyString) text() string {
	if s == nil {
		return ""
	}
	return string(*s)
}

// IntOrString is a number, or a text that may hold a placeholder; it is kept as the text.
type IntOrString string

// UnmarshalJSON accepts a whole number or a string.
func (s *IntOrString) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*s = IntOrString(text)
		return nil
	}
	if string(data) == "null" {
		return nil
	}
	if _, err := strconv.ParseInt(string(data), 10, 64); err != nil {
		return fmt.Errorf("must be a whole number or a string")
	}
	*s = IntOrString(data)
	return nil
}

// MarshalJSON writes a number where the text is one.
func (s IntOrString) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(s), 10, 32); err == nil && strconv.FormatInt(n, 10) == string(s) {
		return []byte(s), nil
	}
	return json.Marshal(string(s))
}

func (s *IntOrString) text() string {
	if s == nil {
		return ""
	}
	return string(*s)
}

// Amount is a number that keeps its own writing (bucket bounds of metrics).
type Amount string

// UnmarshalJSON accepts a number.
func (a *Amount) UnmarshalJSON(data []byte) error {
	if _, err := strconv.ParseFloat(string(data), 64); err != nil {
		return fmt.Errorf("must be a number")
	}
	*a = Amount(data)
	return nil
}

// MarshalJSON writes the number as it was.
func (a Amount) MarshalJSON() ([]byte, error) {
	if a == "" {
		return []byte("0"), nil
	}
	return []byte(a), nil
}

// Item is any JSON value: an item of a loop.
type Item struct{ json.RawMessage }

// Any is JSON that this package does not look into.
type Any struct{ json.RawMessage }
