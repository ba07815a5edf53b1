;; Asks puppetserver's own libraries, one JSON document a line: does a file load, and how is a text decoded?
(ns library
  (:require [cheshire.core :as json]
            [puppetlabs.config.typesafe :as typesafe]
            [puppetlabs.trapperkeeper.authorization.ring-middleware :as middleware]
            [puppetlabs.trapperkeeper.services.authorization.authorization-core :as core])
  (:import (org.eclipse.jetty.util URIUtil)))

(defn- path [raw]
  (let [decoded (URIUtil/decodePath raw)
        resolved (URIUtil/canonicalPath decoded)]
    (when (= (count decoded) (count resolved))
      (URIUtil/compactPath resolved))))

(defn- answer [{:keys [file config raw query pattern text]}]
  (cond
    file (mapv :name (-> (typesafe/config-file->map file) :authorization core/validate-auth-config!
                         :rules core/transform-config))
    config (typesafe/config-file->map config)
    raw (path raw)
    query (:query-params (middleware/assoc-query-params {:query-string query}))
    pattern (let [found (re-find (re-pattern pattern) text)]
              {:groups (if (string? found) [] (some-> found rest vec))})))

(doseq [line (line-seq (java.io.BufferedReader. *in*))]
  (println (json/generate-string
            (try {:answer (answer (json/parse-string line true))}
                 (catch Throwable error {:error (str error)}))))
  (flush))
