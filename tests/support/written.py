"""Ways in which a secret may be written in free text, each with a secret in it; and places for them in a record."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from inspector.model import Exchange, Leg, Request, Response
from inspector.runs.examples import bucket, catalog, content, talk
from tests.support.planted import PLACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Record


def _pkcs12(core: str) -> bytes:
    inner = bytes.fromhex("06092a864886f70d010701a082") + core.encode() + b"\x99" * 40
    middle = b"\x30\x82" + len(inner).to_bytes(2) + inner
    outer = b"\x02\x01\x03" + middle
    return b"\x30\x82" + len(outer).to_bytes(2) + outer


def _store(core: str) -> bytes:
    return b"\xfe\xed\xfe\xed\0\0\0\x02\0\0\0\x01" + core.encode() + b"\x99" * 40


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


FORMS: dict[str, Callable[[str], str]] = {
    # Assignments.
    "ini": lambda core: f"[db]\npassword = {core}\nuser = app\n",
    "short name pass": lambda core: f"host=db pass={core} port=5432",
    "short name pwd": lambda core: f"host=db pwd={core} port=5432",
    "short name pw": lambda core: f"host=db pw={core} port=5432",
    "after a semicolon": lambda core: f"Server=db;Uid=app;Pass={core};Database=app",
    "connection string": lambda core: f"Server=db;User Id=app;Password={core};Timeout=3",
    "after a comma": lambda core: f"//nas/share /mnt cifs username=app,password={core},uid=0 0 0",
    "environment": lambda core: f"export DB_PASS={core}",
    "underscore and pw": lambda core: f"root_pw: {core}\nother: 1\n",
    "hiera": lambda core: f"profile::db::root_password: {core}\n",
    "a list": lambda core: f"users:\n- name: app\n  passwd: {core}\n",
    "property of Java": lambda core: f"spring.datasource.password={core}",
    "camel case": lambda core: f"dbPass={core}",
    "ruby symbol": lambda core: f"{{ :user => 'app', :password => '{core}' }}",
    "ruby hash": lambda core: f"config['password'] = '{core}'",
    "capistrano": lambda core: f"set :password, '{core}'",
    "python": lambda core: f"connect(user='app', password='{core}')",
    "JSON in a text": lambda core: json.dumps({"user": "app", "password": core}),
    "JSON in JSON": lambda core: json.dumps(json.dumps({"password": core})),
    "query": lambda core: f"GET /login?user=app&pw={core}&x=1",
    "JDBC": lambda core: f"jdbc:postgresql://db/app?user=app&password={core}",
    "AWS": lambda core: f"[default]\naws_secret_access_key = {core}\n",
    "npmrc": lambda core: f"//registry.example/:_authToken={core}",
    "in a sentence": lambda core: f"cannot log in, password: {core}, giving up",
    "words with spaces": lambda core: f"passphrase = correct {core} staple\n",
    # Values with signs at the beginning.
    **{
        f"begins with {sign}": lambda core, sign=sign: f"password={sign}{core}-9!\nuser=x"  # type: ignore[misc]
        for sign in "/$<%([{*@&~^"
    },
    **{
        f"quoted, begins with {sign}": lambda core, sign=sign: f"password = '{sign}{core}-9!'"  # type: ignore[misc]
        for sign in "/$<%([{*@"
    },
    **{
        f"YAML, begins with {sign}": lambda core, sign=sign: f"password: {sign}{core}-9!"  # type: ignore[misc]
        for sign in "/$<%([{"
    },
    # Over several lines.
    "next line": lambda core: f"user: a\npassword:\n  {core}\nother: b\n",
    "next line, in JSON": lambda core: f'{{"password":\n   "{core}"}}',
    "block": lambda core: f"password: |\n  {core}\nother: b\n",
    "folded block": lambda core: f"password: >-\n    {core}\nother: b\n",
    "continued line": lambda core: f"password = \\\n   {core}\n",
    "quoted over two lines": lambda core: f'password = "abc\n{core}"\nuser = x\n',
    "option on the next line": lambda core: f"tool --user app --password \\\n  {core}\n",
    # Names before a space.
    "netrc": lambda core: f"machine db.example login app password {core}",
    "netrc of several lines": lambda core: f"machine db.example\n  login app\n  password {core}\n",
    "SetEnv": lambda core: f"  SetEnv API_PASSWORD {core}\n",
    "Dockerfile": lambda core: f"ENV DB_PASSWORD {core}\n",
    "redis": lambda core: f"requirepass {core}\nmasterauth {core}\n",
    "LDAP": lambda core: f"binddn cn=x\nbindpw {core}\n",
    "HAProxy": lambda core: f"  stats enable\n  stats auth admin:{core}\n",
    "HAProxy user": lambda core: f"userlist a\n  user admin insecure-password {core}\n",
    "preseed": lambda core: f"d-i passwd/root-password password {core}\n",
    "kickstart": lambda core: f"rootpw --plaintext {core}\n",
    "kickstart without option": lambda core: f"lang en_US\nrootpw {core}\n",
    "SNMP": lambda core: f"rocommunity {core} 10.0.0.0/8",
    "SNMP user": lambda core: f'createUser mon SHA "{core}" AES "{core}"',
    "SQL": lambda core: f"CREATE USER 'app'@'%' IDENTIFIED BY '{core}';",
    "SQL of PostgreSQL": lambda core: f"ALTER ROLE app WITH LOGIN PASSWORD '{core}';",
    "SQL's function": lambda core: f"SET PASSWORD FOR app = PASSWORD('{core}');",
    "pgpass": lambda core: f"db.example:5432:*:app:{core}\n",
    "sentence": lambda core: f"the password is {core}",
    # Code.
    "define": lambda core: f"define('DB_PASSWORD', '{core}');",
    "define with double quotes": lambda core: f'define( "AUTH_SECRET" , "{core}" );',
    "putenv": lambda core: f'putenv("DB_PASSWORD={core}");',
    # XML.
    "element": lambda core: f"<server><password>{core}</password></server>",
    "element with a name space": lambda core: f'<ns:password type="x">{core}</ns:password>',
    "element over several lines": lambda core: f"<password>\n  {core}\n</password>",
    "attribute": lambda core: f'<Resource username="app" password="{core}"/>',
    "property": lambda core: f'<property name="password" value="{core}"/>',
    "entry": lambda core: f'<entry key="db.password">{core}</entry>',
    "pair of elements": lambda core: f"<name>fs.s3a.secret.key</name>\n  <value>{core}</value>",
    "plist": lambda core: f"<key>Password</key><string>{core}</string>",
    "CDATA": lambda core: f"<password><![CDATA[{core}]]></password>",
    # Command lines.
    "option": lambda core: f"tool --user app --password {core} --host db",
    "option with =": lambda core: f"tool --user app --password={core} --host db",
    "option, quoted": lambda core: f"tool --password '{core} x' --host db",
    "option with one -": lambda core: f"tool -password {core} -host db",
    "token": lambda core: f"kubeadm join 10.0.0.1:6443 --token {core}",
    "mysql": lambda core: f"mysql -u root -p{core} -e 'select 1'",
    "-p": lambda core: f"tool -u app -p {core} -h db",
    "-p without a space": lambda core: f"tool -u app -p{core} -h db",
    "docker login": lambda core: f"docker login -u app -p {core} registry.example",
    "sshpass": lambda core: f"sshpass -p {core} ssh -p 2222 db",
    "sshpass, quoted": lambda core: f"sshpass -p '{core}' ssh db",
    "-u": lambda core: f"/usr/bin/http -u app:{core} https://a.example/",
    "--user": lambda core: f"fetch --user=app:{core} a.example",
    "curl": lambda core: f"curl -s -u 'app:{core}' https://a.example/",
    "smbclient": lambda core: f"smbclient //nas/x -U app%{core}",
    "ldapsearch": lambda core: f"ldapsearch -x -D cn=a -w {core} -b dc=x",
    "redis-cli": lambda core: f"redis-cli -h db -a {core} ping",
    "ipmitool": lambda core: f"ipmitool -H bmc -U admin -P {core} power on",
    "snmpwalk": lambda core: f"snmpwalk -v3 -u mon -A {core} -X {core} host",
    "htpasswd": lambda core: f"htpasswd -bc /etc/x app {core}",
    "rabbitmqctl": lambda core: f"rabbitmqctl add_user app {core}",
    "chpasswd": lambda core: f"echo 'root:{core}' | chpasswd",
    "passwd": lambda core: f"echo {core} | passwd --stdin root",
    "openssl": lambda core: f"openssl pkcs12 -in a -passin pass:{core} -passout pass:{core}",
    "keytool": lambda core: f"keytool -list -keystore a.jks -storepass {core} -keypass {core}",
    "system property": lambda core: f"java -Djavax.net.ssl.keyStorePassword={core} -jar a.jar",
    "Tomcat": lambda core: f'<Connector keystoreFile="a.jks" keystorePass="{core}" truststorePass="{core}"/>',
    # Tokens and hashes.
    "docker": lambda core: json.dumps({"auths": {"a.example": {"auth": _packed(f"app:{core}".encode())}}}),
    "npm's login": lambda core: f"_auth={_packed(f'app:{core}'.encode())}",
    "old Vault": lambda core: f"using s.{core.ljust(24, 'x')} now",
    "old Vault's batch": lambda core: f"using b.{core * 5} now",
    "Vault in the environment": lambda core: f"VAULT_TOKEN={core}",
    "credentials in a URL": lambda core: f"https://app:{core}@a.example/",
    "header": lambda core: f'proxy_set_header Authorization "Basic {_packed(f"a:{core}".encode())}";',
    "header with a token": lambda core: f"Authorization: Token {core}",
    # Wireless networks.
    "wpa_supplicant": lambda core: f'network={{\n  ssid="x"\n  psk="{core}"\n}}',
    "NetworkManager": lambda core: f"[wifi-security]\nkey-mgmt=wpa-psk\npsk={core}\n",
    "hostapd": lambda core: f"ssid=x\nwpa_passphrase={core}\n",
    "WEP": lambda core: f"wep_key0={core}\n",
    # Key stores.
    "JKS in base64": lambda core: _packed(_store(core)),
    "PKCS12 in base64": lambda core: f"keystore: {_packed(_pkcs12(core))}",
}  # fmt: skip
"""How free text has a secret."""
BROKEN = frozenset({"JKS in base64", "YAML, begins with /"})
"""Forms that nobody recognizes in a path, which is in pieces where they have a slash."""
BINARY: dict[str, Callable[[str], bytes]] = {"JKS": _store, "PKCS12": _pkcs12}
"""Files that are secrets."""


def _pinned(text: str) -> list[Record]:
    """Return a catalog whose rich data has a text deep in it, and as a parameter of a resource that has others."""
    deep = {"__ptype": "Hash", "__pvalue": ["note", text, 5, [text]]}
    return talk(catalog(resources=[{"type": "File", "title": "/a", "parameters": {"content": text, "deep": deep}}]))


def _yaml(text: str) -> Record:
    """Return an answer in YAML that has a text as a value and as a comment."""
    comment = "".join(f"# {line}\n" for line in text.splitlines())
    body = f"---\n{comment}note: {json.dumps(text)}\n"
    headers = (("Content-Type", "text/yaml"),)
    return Exchange(
        Leg("p", "agent"), Request(target="/puppet/v3/other/x"), Response(headers, body.encode(), status=200)
    )


RECORDED: dict[str, Callable[[str], list[Record]]] = {
    "catalog": _pinned,
    "file of a module": lambda text: talk(content("modules/a/b", text.encode())),
    "backup of a file": lambda text: talk(bucket(f"first\n{text}\nlast\n".encode())),
    "YAML": lambda text: [_yaml(text)],
    **{
        place: PLACES[place]
        for place in (
            "fact", "form", "parameter", "title", "log", "event", "error", "web page", "plain error", "reason", "file",
            "unknown request", "unknown JSON", "header", "connection's error", "handshake", "gap", "cut JSON", "query",
        )
    },
}  # fmt: skip
"""Where a text stands in what is recorded."""
