"""What is left of a text without its passwords."""

from __future__ import annotations

import pytest
from spark_drain_agent.spark_internals.errors import cause_first
from spark_drain_agent.spark_internals.redaction import redacted, redacted_place


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jdbc:x://h/d?user=u&password=hunter2&a=b", "jdbc:x://h/d?user=u&password=*********(redacted)&a=b"),
        ('username="u" password="kafka pw";', 'username="u" password=*********(redacted);'),
        ("hdfs://user:hunter2@host/x", "hdfs://user:*********(redacted)@host/x"),
        ("fs.s3a.secret.key: abc, fs.s3a.endpoint: e", "fs.s3a.secret.key: *********(redacted), fs.s3a.endpoint: e"),
        (
            "https://s/?X-Amz-Security-Token=abc&X-Amz-Signature=12&x=1",
            "https://s/?X-Amz-Security-Token=*********(redacted)&X-Amz-Signature=*********(redacted)&x=1",
        ),
        ("https://h/x?token=abc&access_key=def&tokens=3", "https://h/x?token=*********(redacted)&access_key=*********(redacted)&tokens=3"),
        ("https://me@corp.com:hunter2@db/x", "https://me@corp.com:*********(redacted)@db/x"),
        ("abfss://box@store.net:443/a me@corp", "abfss://box@store.net:443/a me@corp"),
        ("sasl://me@one:9092,me@two:9092", "sasl://me@one:9092,me@two:9092"),
        ("hdfs://user:hun@ter2@host/x", "hdfs://user:*********(redacted)@host/x"),
        ("fs.s3a.encryption.key=abc", "fs.s3a.encryption.key=*********(redacted)"),
        ("fs.azure.account.key.a.dfs=abc; b", "fs.azure.account.key.a.dfs=*********(redacted); b"),
        ("connect app:hunter2@db.example.com:5432/x", "connect app:*********(redacted)@db.example.com:5432/x"),
        ("s3a://AKIA:hun/ter2@bucket/x", "s3a://AKIA:*********(redacted)@bucket/x"),
        ("jdbc:oracle:thin:app/hunter2@//db:1521/x", "jdbc:oracle:thin:app/*********(redacted)@//db:1521/x"),
        ("password=hun,ter2 or password=a,user=b", "password=*********(redacted) or password=*********(redacted),user=b"),
        ("//db;user=a;password={hun;ter2};encrypt=true", "//db;user=a;password=*********(redacted);encrypt=true"),
        (r'{"a": "{\"password\": \"hunter2\"}"}', r'{"a": "{\"password\": *********(redacted)}"}'),
        (r"{\\\"password\\\":\\\"hun ter2\\\"}", r"{\\\"password\\\":*********(redacted)}"),
        ("password => 'hunter2' b, password ==> hunter2", "password => *********(redacted) b, password ==> *********(redacted)"),
        (r'{"password": "hun\"ter2", "b": "c"}', '{"password": *********(redacted), "b": "c"}'),
        ("Password='it''s hunter2 ', b", "Password=*********(redacted), b"),
        ("['psql', '--password', 'hunter2', 'b']", "['psql', '--password', *********(redacted), 'b']"),
        ("[('password', 'hunter2'), ('b', 'c')]", "[('password', *********(redacted)), ('b', 'c')]"),
        ("host=db password=ab&hunter2 dbname=x", "host=db password=*********(redacted) dbname=x"),
        ("host=db password=&hunter2 dbname=x", "host=db password=*********(redacted) dbname=x"),
        ("(host=db password=ab)hunter2)", "(host=db password=*********(redacted))"),
        ("password=ab\"hunter2 b, password=ab'hunter2 b", "password=*********(redacted) b, password=*********(redacted) b"),
        ("{'password': b'hunter2', 'b': 1}", "{'password': *********(redacted), 'b': 1}"),
        ("Config(user='app', password=Secret('hunter2'))", "Config(user='app', password=*********(redacted)))"),
        ("Map(user -> app, password -> hunter2)", "Map(user -> app, password -> *********(redacted))"),
        ("app:hun:ter/2@db.example.com:5432/x", "app:*********(redacted)@db.example.com:5432/x"),
        ("psql --password hunter2 -c x", "psql --password *********(redacted) -c x"),
        ("https://x/y?sv=1&sig=hunter2&se=2", "https://x/y?sv=1&sig=*********(redacted)&se=2"),
        ("api_key=hunter2 apiKey: hunter2, b", "api_key=*********(redacted) apiKey: *********(redacted), b"),
        ("private_key='-----BEGIN\nhunter2'", "private_key=*********(redacted)"),
        ("passphrase=hunter2 private_key_pwd=hunter2", "passphrase=*********(redacted) private_key_pwd=*********(redacted)"),
        ("{'Authorization': 'Basic aHVudGVyMg=='}", "{'Authorization': 'Basic *********(redacted)'}"),
        ("Authorization: Bearer aHVudGVyMg==, b", "Authorization: Bearer *********(redacted), b"),
        ("sent Bearer hunter2hunter2hunter2 in vain", "sent Bearer *********(redacted) in vain"),
        ("X-Api-Token: hunter2", "X-Api-Token: *********(redacted)"),
        ("token=hunter2hunter2hunter2", "token=*********(redacted)"),
        ("CREATE USER a IDENTIFIED BY 'hun ter2'; b", "CREATE USER a IDENTIFIED BY *********(redacted); b"),
        ("<a><db.password>hun ter2</db.password></a>", "<a><db.password>*********(redacted)</db.password></a>"),
        (
            "<name>fs.s3a.secret.key</name>\n<value>hunter2</value><name>a</name><value>b</value>",
            "<name>fs.s3a.secret.key</name>\n<value>*********(redacted)</value><name>a</name><value>b</value>",
        ),
        ('{"token": "hunter2", "a": "b"}', '{"token": *********(redacted), "a": "b"}'),
        ("refresh_token=hunter2 GITHUB_TOKEN=hunter2", "refresh_token=*********(redacted) GITHUB_TOKEN=*********(redacted)"),
        ("[('Authorization', 'Basic hunter2')]", "[('Authorization', 'Basic *********(redacted)')]"),
        (r"{\"Authorization\": \"ApiKey hunter2\"}", r"{\"Authorization\": \"ApiKey *********(redacted)\"}"),
        ('<password type="x">hunter2</password>', '<password type="x">*********(redacted)</password>'),
        ('password="""hun"\nter2""", b', "password=*********(redacted), b"),
        ("pass=hunter2 DB_PASS=hunter2 bypass=1", "pass=*********(redacted) DB_PASS=*********(redacted) bypass=1"),
        ("https://x/y?key=hunter2hunter2hunter2&a=b", "https://x/y?key=*********(redacted)&a=b"),
        ("Authorization: token hunter2", "Authorization: token *********(redacted)"),
        ("ALTER USER x PASSWORD 'hun''ter2' b", "ALTER USER x PASSWORD *********(redacted) b"),
        ("IDENTIFIED BY PASSWORD '*hunter2'", "IDENTIFIED BY PASSWORD *********(redacted)"),
        ("<password><![CDATA[hun<ter2]]></password>", "<password>*********(redacted)</password>"),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter\n2\n-----END RSA", "-----BEGIN RSA PRIVATE KEY-----*********(redacted)-----END RSA"),
        ("basic authentication failed: the bearer of authentication", "basic authentication failed: the bearer of authentication"),
        ("line 1, token=EOF, key=a, primary_key=b", "line 1, token=EOF, key=a, primary_key=b"),
        ("hdfs://nn:8020/user/me@corp/x", "hdfs://nn:8020/user/me@corp/x"),
        ("Lock:java.lang.Object@3f2a1b is held", "Lock:java.lang.Object@3f2a1b is held"),
        ("the driver's credentials: start it", "the driver's credentials: start it"),
        ("unexpected token: 'SELECT' at https://host:80/path", "unexpected token: 'SELECT' at https://host:80/path"),
    ],
)
def test_passwords_do_not_get_into_a_report(text: str, told: str) -> None:
    assert redacted(text) == told
    assert cause_first(f"Py4JError: {text}").endswith(told)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("s3a://bucket/secret=1/password=a", "s3a://bucket/secret=1/password=a"),
        ("s3a://key:hunter2@bucket/secret=1/a", "s3a://key:*********(redacted)@bucket/secret=1/a"),
        ("jdbc:x://h/d?user=u&password=hunter2&a=b", "jdbc:x://h/d?user=u&password=*********(redacted)&a=b"),
        ("jdbc:h2:/x;USER=sa;PASSWORD=hunter2", "jdbc:h2:/x;USER=sa;PASSWORD=*********(redacted)"),
        ("sql://me:hunt?er,2@db/shop", "sql://me:*********(redacted)@db/shop"),
        ("password=hunter2/a host=h", "password=*********(redacted) host=h"),
        ("host=/run password=hunter2 dbname=shop", "host=/run password=*********(redacted) dbname=shop"),
    ],
)
def test_a_folder_is_no_password_whatever_it_is_called(place: str, told: str) -> None:
    assert redacted_place(place) == told
