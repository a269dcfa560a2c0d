package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
)

// admissionReview is the part of admission.k8s.io/v1 AdmissionReview that this server reads and writes.
type admissionReview struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Request    *admissionRequest  `json:"request,omitempty"`
	Response   *admissionResponse `json:"response,omitempty"`
}

type admissionRequest struct {
	UID       string `json:"uid"`
	Operation string `json:"operation"`
	Resource  struct {
		Resource string `json:"resource"`
	} `json:"resource"`
	UserInfo struct {
		Username string `json:"username"`
	} `json:"userInfo"`
}

type admissionResponse struct {
	UID     string `json:"uid"`
	Allowed bool   `json:"allowed"`
	Status  struct {
		Message string `json:"message"`
	} `json:"status"`
}

// review answers an admission review, and logs its user and its object.
func review(w http.ResponseWriter, r *http.Request, version string, allowed bool) {
	var got admissionReview
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Request == nil {
		http.Error(w, "the body is not an AdmissionReview with a request", http.StatusBadRequest)
		return
	}
	verb := "denies"
	if allowed {
		verb = "allows"
	}
	verdict := fmt.Sprintf("version %s %s %s %s by %s",
		version, verb, got.Request.Operation, got.Request.Resource.Resource, got.Request.UserInfo.Username)
	log.Print(verdict)
	response := &admissionResponse{UID: got.Request.UID, Allowed: allowed}
	response.Status.Message = verdict
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionReview{APIVersion: got.APIVersion, Kind: got.Kind, Response: response})
}
