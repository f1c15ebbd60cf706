// Package openai has the JSON of OpenAI's API for chat completions, text completions, models and errors: the types of its
// requests and answers (https://platform.openai.com/docs/api-reference), with strict decoding of requests. It serves
// nothing and knows no model.
package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Types of errors.
const (
	InvalidRequest = "invalid_request_error"
	ServerError    = "server_error"
)

// Codes of errors.
const (
	CodeContextLength = "context_length_exceeded"
	CodeModelNotFound = "model_not_found"
	CodeOverloaded    = "overloaded"
	CodeUnknownURL    = "unknown_url"
	CodeUnsupported   = "unsupported_parameter"
)

// Error is what a client gets in place of an answer, or as the last frame of one.
type Error struct {
	Status  int // of HTTP; not part of the JSON
	Message string
	Type    string
	Param   string // the parameter at fault; "" is null
	Code    string // "" is null
}

// Error returns the message with the parameter it is about.
func (e *Error) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

// MarshalJSON returns {"error": {"message", "type", "param", "code"}}.
func (e *Error) MarshalJSON() ([]byte, error) {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	return json.Marshal(map[string]body{"error": {e.Error(), e.Type, orNull(e.Param), orNull(e.Code)}})
}

// Invalid returns the error for a parameter that is wrong, "" for none in particular.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: InvalidRequest, Param: param, Message: fmt.Sprintf(format, args...)}
}

// Unsupported returns the error for a parameter, or a value of it, that OpenAI has and this package has not.
func Unsupported(param, format string, args ...any) *Error {
	err := Invalid(param, format, args...)
	err.Code = CodeUnsupported
	return err
}

// orNull returns nil, which JSON spells null, for "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
