"""Which language a file is in: by its name, or else by how it begins."""

from __future__ import annotations

from inspector.pages import languages
from inspector.pages.languages import CONF, DIFF, JSON, PLAIN, PUPPET, PYTHON, RUBY, SHELL, XML, YAML


def test_a_files_language_by_its_name() -> None:
    rows: list[tuple[str, languages.Language]] = [
        ("/puppet/v3/file_content/modules/demo/init.pp", PUPPET),
        ("lib/puppet/type/x.RB", RUBY),
        ("Puppetfile", RUBY),
        ("a/metadata.json", JSON),
        ("hiera.yaml", YAML),
        ("common.eyaml", YAML),
        ("run.sh", SHELL),
        ("x.py", PYTHON),
        ("app.conf", CONF),
        ("/etc/ssh/sshd_config", CONF),
        ("/etc/resolv.conf", CONF),
        ("/etc/hosts", CONF),
        ("server.xml", XML),
        ("fix.patch", DIFF),
        ("logo.png", PLAIN),
        ("", PLAIN),
        (".", PLAIN),
        ("pp", PLAIN),
    ]
    for name, language in rows:
        assert languages.of_file(name) is language, name


def test_a_texts_language_by_its_beginning() -> None:
    rows: list[tuple[bytes, languages.Language]] = [
        (b"#!/bin/sh\n", SHELL),
        (b"#!/usr/bin/env bash -e\n", SHELL),
        (b"#! /opt/puppetlabs/puppet/bin/ruby\n", RUBY),
        (b"#!/usr/bin/python3.11\n", PYTHON),
        (b"<?xml version='1.0'?>", XML),
        (b"---\na: 1\n", YAML),
        (b"--- !ruby/object:Puppet::Transaction::Report\n", YAML),
        (b"\n--- /etc/motd\t2026\n+++ /tmp/x\t2026\n@@ -1,3 +1,4 @@\n-a\n", DIFF),
        (b"text @@ --- more", PLAIN),
        (b"# comment", PLAIN),
        (b"\x00\xff\x1b[2J", PLAIN),
    ]
    for data, language in rows:
        assert languages.of_file("facts.d/made", data) is language, data


def test_a_template_is_in_the_language_of_the_file_that_it_makes_and_in_that_of_its_code() -> None:
    epp, erb = languages.of_file("vhost.conf.epp"), languages.of_file("motd.erb")
    assert (epp.pattern, epp.code, epp.name) == (CONF.pattern, PUPPET, "conf with puppet")
    assert (erb.pattern, erb.code, erb.name) == (None, RUBY, "plain with ruby")
