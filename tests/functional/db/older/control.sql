BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0022');
CREATE TABLE claims (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	host TEXT NOT NULL, 
	node TEXT NOT NULL, 
	instance_uuid TEXT NOT NULL, 
	vcpus INTEGER NOT NULL, 
	memory_mb INTEGER NOT NULL, 
	disk_gb INTEGER NOT NULL, 
	pci TEXT, 
	resize_target INTEGER NOT NULL, 
	created_at TEXT NOT NULL, 
	state TEXT DEFAULT 'claimed' NOT NULL, 
	migration_uuid TEXT, 
	numa_topology TEXT
);
CREATE TABLE cooldowns (
	scope VARCHAR(16) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	until DATETIME NOT NULL, 
	times INTEGER NOT NULL, 
	PRIMARY KEY (scope, name)
);
INSERT INTO "cooldowns" VALUES('instance','vm4','2026-11-20 12:10:00.000000',1);
CREATE TABLE counters (
	name VARCHAR(64) NOT NULL, 
	labels VARCHAR(512) NOT NULL, 
	value DOUBLE NOT NULL, 
	PRIMARY KEY (name, labels)
);
INSERT INTO "counters" VALUES('cycles','{"aggregate": "gpu", "outcome": "planned"}',1.0);
CREATE TABLE cycles (
	aggregate VARCHAR(255) NOT NULL, 
	started_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	worker VARCHAR(255) NOT NULL, 
	outcome VARCHAR(16), 
	imbalanced_cycles INTEGER NOT NULL, 
	failures INTEGER DEFAULT '0' NOT NULL, not_before DATETIME, report BLOB, good_at DATETIME, 
	PRIMARY KEY (aggregate)
);
INSERT INTO "cycles" VALUES('gpu','2026-11-20 12:00:00.000000','2026-11-20 12:00:00.000000','older:1','planned',1,0,NULL,X'789CC594DB6AC3300C865FA5F8BA8C9EC660AF328A716C25F59648C6871E2879F7C94E9B76855D14C27697FCB27EFDFA88731695A72F40D9784A2E88F7D9623E139ABACA2218A9EA083E8B2FCB7BB9829A3C14FD95F51D85288366291B7C6C2FD2D5AD3C4BE85CB4606E07A2BC3FD491C98622380FCA88A2EC07BFB3A8A0B118EED2E48E0A106A1BC7915AA590B39DB28DF87D0B030ED0044978ED3410A245156D9144959BE1E840476E3674C0683B18FBC74A004D6CC485B712882346851A644A36EF29F6DDB22C021DF993EC2AD6968BD586258463648A21B284A96D59226F4AC83CC2ED5478A0E13C7DF258393867852B61083C9C0A590C94BC2EAD4AF4F3D95FA333D3A15B3D8F6E35113AFD1FE8EAE9D0AD9F47B79E081D883EEF86AA44178D4BB98E7CD9F37536C375D694305E3EF56BFC0294B36FC4F6C7144DD46618832FA5C87C8BB56B1532E692B23CFA87E8D45A6D6F7F240F750AAA1DDF0FCAA3C566984B0862DB7F03348E92FE','2026-11-20 12:00:00.000000');
CREATE TABLE drains (
	uuid VARCHAR(36) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	aggregate VARCHAR(255) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	requested_by VARCHAR(255) NOT NULL, 
	requested_at DATETIME NOT NULL, 
	reason TEXT NOT NULL, 
	with_stopped BOOLEAN NOT NULL, 
	parallel INTEGER, 
	deadline DATETIME, 
	keep_spare INTEGER NOT NULL, 
	avoid TEXT NOT NULL, 
	is_ours BOOLEAN NOT NULL, 
	looked_at DATETIME, 
	servers INTEGER, 
	"left" INTEGER, 
	blocked TEXT NOT NULL, 
	problem TEXT NOT NULL, 
	finished_at DATETIME, 
	PRIMARY KEY (uuid)
);
CREATE TABLE evaluations (
	id INTEGER NOT NULL, 
	aggregate VARCHAR(255) NOT NULL, 
	at DATETIME NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	policies TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "evaluations" VALUES(1,'gpu','2026-11-20 12:00:00.000000','planned','{}');
CREATE TABLE gates (
	name VARCHAR(64) NOT NULL, 
	passed INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "gates" VALUES('dispatch',3);
INSERT INTO "gates" VALUES('planning',1);
INSERT INTO "gates" VALUES('notifications',0);
CREATE TABLE habits (
	aggregate VARCHAR(255) NOT NULL, 
	at DATETIME NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (aggregate)
);
INSERT INTO "habits" VALUES('gpu','2026-11-20 12:00:00.000000',X'789CAB564A2E2855B252883634B734353437333030D033D05188562ACB3554D2510052464AB140DA110AD25D2C80A413180782F8AE40C21BC47701F34D407C472790406060A0ADAD526C2D00D6B2195D');
CREATE TABLE host_loads (
	aggregate VARCHAR(255) NOT NULL, 
	at DATETIME NOT NULL, 
	hosts BLOB NOT NULL, 
	PRIMARY KEY (aggregate)
);
INSERT INTO "host_loads" VALUES('gpu','2026-11-20 12:00:00.000000',X'789C8B8E0500011500B9');
CREATE TABLE leases (
	name VARCHAR(64) NOT NULL, 
	holder VARCHAR(255), 
	expires_at DATETIME, 
	progress_at DATETIME, 
	PRIMARY KEY (name)
);
INSERT INTO "leases" VALUES('reconciler',NULL,NULL,NULL);
INSERT INTO "leases" VALUES('retention',NULL,NULL,NULL);
INSERT INTO "leases" VALUES('notifications',NULL,NULL,NULL);
CREATE TABLE maintenances (
	uuid VARCHAR(36) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	requested_by VARCHAR(255) NOT NULL, 
	requested_at DATETIME NOT NULL, 
	options TEXT NOT NULL, 
	hosts TEXT NOT NULL, 
	runner VARCHAR(255), 
	runner_at DATETIME, 
	PRIMARY KEY (uuid)
);
CREATE TABLE move_events (
	id INTEGER NOT NULL, 
	move_uuid VARCHAR(36) NOT NULL, 
	at DATETIME NOT NULL, 
	old_state VARCHAR(16), 
	new_state VARCHAR(16) NOT NULL, 
	worker VARCHAR(255), 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(move_uuid) REFERENCES moves (uuid)
);
INSERT INTO "move_events" VALUES(1,'c04797b2-91d7-4555-9d60-b90a00366ef2','2026-11-20 12:00:00.000000',NULL,'planned',NULL,'planned');
INSERT INTO "move_events" VALUES(2,'04a5e1bc-2ea1-449b-bffa-7af8cf86d30c','2026-11-20 12:00:00.000000',NULL,'planned',NULL,'planned');
INSERT INTO "move_events" VALUES(3,'8786350b-145c-4303-a77b-9190d6c9006d','2026-11-20 12:00:00.000000',NULL,'planned',NULL,'planned');
INSERT INTO "move_events" VALUES(4,'c04797b2-91d7-4555-9d60-b90a00366ef2','2026-11-20 12:00:00.000000','planned','dispatched','older:1','');
INSERT INTO "move_events" VALUES(5,'04a5e1bc-2ea1-449b-bffa-7af8cf86d30c','2026-11-20 12:00:00.000000','planned','dispatched','older:1','');
INSERT INTO "move_events" VALUES(6,'c04797b2-91d7-4555-9d60-b90a00366ef2','2026-11-20 12:00:00.000000','dispatched','checking','older:1','');
INSERT INTO "move_events" VALUES(7,'c04797b2-91d7-4555-9d60-b90a00366ef2','2026-11-20 12:00:00.000000','checking','migrating','older:1','');
CREATE TABLE moves (
	uuid VARCHAR(36) NOT NULL, 
	plan_uuid VARCHAR(36) NOT NULL, 
	aggregate VARCHAR(255) NOT NULL, 
	ordinal INTEGER NOT NULL, 
	depends_on TEXT NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	instance_uuid VARCHAR(36) NOT NULL, 
	source VARCHAR(255) NOT NULL, 
	destination VARCHAR(255) NOT NULL, 
	memory_mb INTEGER NOT NULL, 
	reason TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	owner VARCHAR(255), 
	not_before DATETIME NOT NULL, 
	retry_count INTEGER NOT NULL, 
	migration_uuid VARCHAR(36), 
	abort_requested BOOLEAN NOT NULL, 
	created_at DATETIME NOT NULL, 
	requested_at DATETIME, 
	finished_at DATETIME, 
	error_type VARCHAR(64), 
	error TEXT, dispatched_at DATETIME, forced_at DATETIME, settled_at DATETIME, memory_total BIGINT, memory_remaining BIGINT, outage BOOLEAN DEFAULT 0 NOT NULL, kind VARCHAR(8) DEFAULT 'live' NOT NULL, checked_at DATETIME, project_id VARCHAR(255), caused_by VARCHAR(36), position INTEGER DEFAULT '0' NOT NULL, expected_seconds DOUBLE, expected_downtime DOUBLE, memory_processed BIGINT, 
	PRIMARY KEY (uuid), 
	FOREIGN KEY(plan_uuid) REFERENCES plans (uuid)
);
INSERT INTO "moves" VALUES('c04797b2-91d7-4555-9d60-b90a00366ef2','2f3c18f1-8305-4a05-9a1c-d3d1d45823f6','gpu',1,'[]','spread','vm1','a','b',1024,'spreads','migrating','older:1','2026-11-20 12:00:00.000000',0,NULL,0,'2026-11-20 12:00:00.000000','2026-11-20 12:00:00.000000',NULL,NULL,NULL,'2026-11-20 12:00:00.000000',NULL,NULL,NULL,NULL,0,'live','2026-11-20 12:00:00.000000',NULL,NULL,0,7.0,0.1,NULL);
INSERT INTO "moves" VALUES('04a5e1bc-2ea1-449b-bffa-7af8cf86d30c','2f3c18f1-8305-4a05-9a1c-d3d1d45823f6','gpu',2,'[]','spread','vm2','c','d',1024,'spreads','dispatched',NULL,'2026-11-20 12:00:00.000000',0,NULL,0,'2026-11-20 12:00:00.000000',NULL,NULL,NULL,NULL,'2026-11-20 12:00:00.000000',NULL,NULL,NULL,NULL,0,'live','2026-11-20 12:00:00.000000',NULL,NULL,1,7.0,0.1,NULL);
INSERT INTO "moves" VALUES('8786350b-145c-4303-a77b-9190d6c9006d','2f3c18f1-8305-4a05-9a1c-d3d1d45823f6','gpu',3,'[]','spread','vm3','e','f',1024,'spreads','planned',NULL,'2026-11-20 12:00:00.000000',0,NULL,0,'2026-11-20 12:00:00.000000',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'live','2026-11-20 12:00:00.000000',NULL,NULL,2,7.0,0.1,NULL);
CREATE TABLE notifications (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	uuid VARCHAR(36) NOT NULL, 
	sequence INTEGER, 
	event_type VARCHAR(64) NOT NULL, 
	at DATETIME NOT NULL, 
	body TEXT NOT NULL, 
	sent_at DATETIME
);
INSERT INTO "notifications" VALUES(1,'d7788ad1-7b50-4c2a-911a-fb7595a16cb9',NULL,'plan.approved','2026-11-20 12:00:00.000000','{"kronos_object.name": "PlanPayload", "kronos_object.namespace": "kronos", "kronos_object.version": "1.0", "kronos_object.data": {"plan_uuid": "2f3c18f1-8305-4a05-9a1c-d3d1d45823f6", "aggregate": "gpu", "purpose": "balance", "state": "executing", "mode": "spread", "planner": "spread", "created_at": "2026-11-20T12:00:00.000000Z", "expires_at": "2026-11-20T13:00:00.000000Z", "approved_at": null, "approved_by": null, "finished_at": null, "combined_before": 0.5, "combined_after": 0.1, "move_count": 3, "moves": {"planned": 3}, "reason": null}}',NULL);
INSERT INTO "notifications" VALUES(2,'da7fc422-414b-4887-9edd-f4e421b845e7',NULL,'move.start','2026-11-20 12:00:00.000000','{"kronos_object.name": "MovePayload", "kronos_object.namespace": "kronos", "kronos_object.version": "1.0", "kronos_object.data": {"move_uuid": "c04797b2-91d7-4555-9d60-b90a00366ef2", "plan_uuid": "2f3c18f1-8305-4a05-9a1c-d3d1d45823f6", "aggregate": "gpu", "instance_uuid": "vm1", "instance_name": null, "source": "a", "destination": "b", "phase": "spread", "kind": "live", "memory_mb": 1024, "reason": "spreads", "request_id": "req-c04797b2-91d7-4555-9d60-b90a00366ef2", "migration_uuid": null, "state": "migrating", "final": false, "retry_count": 0, "error_type": null, "error": null, "detail": "", "dispatched_at": "2026-11-20T12:00:00.000000Z", "requested_at": "2026-11-20T12:00:00.000000Z", "finished_at": null}}',NULL);
INSERT INTO "notifications" VALUES(3,'04246687-a775-4352-bd04-f59687665b68',NULL,'automation.changed','2026-11-20 12:00:00.000000','{"kronos_object.name": "AutomationPayload", "kronos_object.namespace": "kronos", "kronos_object.version": "1.0", "kronos_object.data": {"kind": "level", "aggregate": "gpu", "value": "approve", "set_at": "2026-11-20T12:00:00.000000Z", "set_by": "jane", "reason": "slow"}}',NULL);
INSERT INTO "notifications" VALUES(4,'9e4df0bc-5687-42a1-83d2-ec74607cfa11',NULL,'automation.changed','2026-11-20 12:00:00.000000','{"kronos_object.name": "AutomationPayload", "kronos_object.namespace": "kronos", "kronos_object.version": "1.0", "kronos_object.data": {"kind": "pause", "aggregate": "db", "value": "pause", "set_at": "2026-11-20T12:00:00.000000Z", "set_by": "jane", "reason": ""}}',NULL);
CREATE TABLE plans (
	uuid VARCHAR(36) NOT NULL, 
	aggregate VARCHAR(255) NOT NULL, 
	mode VARCHAR(16) NOT NULL, 
	planner VARCHAR(64) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	approved_at DATETIME, 
	approved_by VARCHAR(255), 
	combined_before DOUBLE, 
	combined_after DOUBLE, 
	purpose VARCHAR(16) DEFAULT 'balance' NOT NULL, move_count INTEGER DEFAULT '0' NOT NULL, fingerprint VARCHAR(64), last_seen_at DATETIME, times_seen INTEGER DEFAULT '1' NOT NULL, ended_because TEXT, detail TEXT, 
	PRIMARY KEY (uuid)
);
INSERT INTO "plans" VALUES('2f3c18f1-8305-4a05-9a1c-d3d1d45823f6','gpu','spread','spread','executing','2026-11-20 12:00:00.000000','2026-11-20 13:00:00.000000',NULL,NULL,NULL,0.5,0.1,'balance',3,'af394cc7df266ed539f13b15cd6212de24a975a2c3f7eb0dfd5bc235df2b23bc','2026-11-20 12:00:00.000000',1,NULL,NULL);
CREATE TABLE quarantines (
	instance_uuid VARCHAR(36) NOT NULL, 
	until DATETIME, 
	reason TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	PRIMARY KEY (instance_uuid)
);
INSERT INTO "quarantines" VALUES('vm5','2026-11-20 12:10:00.000000','failed','2026-11-20 12:00:00.000000');
CREATE TABLE refusals (
	instance_uuid VARCHAR(36) NOT NULL, 
	until DATETIME NOT NULL, 
	hosts TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	refused_at DATETIME NOT NULL, 
	PRIMARY KEY (instance_uuid)
);
CREATE TABLE repairs (
	uuid VARCHAR(36) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	instance_uuid VARCHAR(36) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	evidence TEXT NOT NULL, 
	"before" TEXT NOT NULL, 
	"after" TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	closed_at DATETIME, 
	PRIMARY KEY (uuid)
);
CREATE TABLE reports (
	plan_uuid VARCHAR(36) NOT NULL, 
	created_at DATETIME NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (plan_uuid), 
	FOREIGN KEY(plan_uuid) REFERENCES plans (uuid)
);
INSERT INTO "reports" VALUES('2f3c18f1-8305-4a05-9a1c-d3d1d45823f6','2026-11-20 12:00:00.000000',X'789CC594DB6AC3300C865FA5F8BA8C1E36067B95518C0F4AEA2D918C65F740E9BBCF76DAB414765108DB5DFC29FAF5EB27CE49E840DF80B20D943C8B8FD9623E13867AED10AC544D8450E0CBF21E6B682840E56F996F89A364935111F8DC5C104BE87D7460AFB0275B9A04FB00CA8A4A7643CF4968681DF2DDC462440342E3E2286B54E232FF5864C4EF4E2D7840CB92F0DA6981A343155D4542976638783031375BDA63743D8CFD6385C15016CA85F76A285B8C0A0DC8945CD94BECFA655D047A0A47D9EBCC968BD56B4608879893E29811A6AECB8882AD26CB08BF55FC90860FF495C7CA41B9905CE1C1F0F01617C89482A9AD4A9CE7B3BF8ECE4E17DDEAF9E856134567FE23BA66BAE8D6CF47B79E283A10E7B21BAA6A5DB43E953A5294E53ADBE13A1B4A182F9FFA4DCF107565ED418152CC495611DF29CC81563FF5313C98A4CE1977FBBF046812AB6E3CEF5540876D3D0B42109BF30F1A8A83F9');
CREATE TABLE scores (
	host VARCHAR(255) NOT NULL, 
	policy VARCHAR(64) NOT NULL, 
	mode VARCHAR(16) NOT NULL, 
	weight DOUBLE NOT NULL, 
	value DOUBLE NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (host, policy)
);
CREATE TABLE server_names (
	uuid VARCHAR(36) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	seen_at DATETIME NOT NULL, 
	PRIMARY KEY (uuid)
);
INSERT INTO "server_names" VALUES('vm1','web-1','2026-11-20 12:00:00.000000');
CREATE TABLE switch_events (
	id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	aggregate VARCHAR(255) NOT NULL, 
	value VARCHAR(16) NOT NULL, 
	set_at DATETIME NOT NULL, 
	set_by VARCHAR(255) NOT NULL, 
	reason TEXT NOT NULL, told BOOLEAN DEFAULT 1 NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "switch_events" VALUES(1,'level','gpu','approve','2026-11-20 12:00:00.000000','jane','slow',0);
INSERT INTO "switch_events" VALUES(2,'pause','db','pause','2026-11-20 12:00:00.000000','jane','',0);
CREATE TABLE switches (
	kind VARCHAR(16) NOT NULL, 
	aggregate VARCHAR(255) NOT NULL, 
	value VARCHAR(16) NOT NULL, 
	set_at DATETIME NOT NULL, 
	set_by VARCHAR(255) NOT NULL, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (kind, aggregate)
);
INSERT INTO "switches" VALUES('level','gpu','approve','2026-11-20 12:00:00.000000','jane','slow');
INSERT INTO "switches" VALUES('pause','db','pause','2026-11-20 12:00:00.000000','jane','');
CREATE TABLE tasks (
	migration_uuid VARCHAR(36) NOT NULL, 
	instance_uuid VARCHAR(36) NOT NULL, 
	worker VARCHAR(255) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	beat_at DATETIME NOT NULL, 
	PRIMARY KEY (migration_uuid)
);
CREATE TABLE workers (
	name VARCHAR(255) NOT NULL, 
	heartbeat_at DATETIME NOT NULL, role VARCHAR(16) DEFAULT 'executor' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "workers" VALUES('older:1','2026-11-20 12:00:00.000000','executor');
CREATE INDEX plans_aggregate_state_idx ON plans (aggregate, state);
CREATE INDEX plans_created_at_idx ON plans (created_at);
CREATE INDEX moves_plan_uuid_idx ON moves (plan_uuid);
CREATE INDEX moves_instance_uuid_idx ON moves (instance_uuid);
CREATE INDEX moves_state_idx ON moves (state, not_before);
CREATE INDEX move_events_move_uuid_idx ON move_events (move_uuid);
CREATE UNIQUE INDEX claims_key_idx ON claims (host, node, instance_uuid, resize_target);
CREATE INDEX repairs_created_at_idx ON repairs (created_at);
CREATE INDEX repairs_instance_uuid_idx ON repairs (instance_uuid);
CREATE INDEX tasks_worker_idx ON tasks (worker);
CREATE INDEX server_names_seen_at_idx ON server_names (seen_at);
CREATE INDEX reports_created_at_idx ON reports (created_at);
CREATE INDEX plans_aggregate_created_at_idx ON plans (aggregate, created_at);
CREATE INDEX plans_state_expires_at_idx ON plans (state, expires_at);
CREATE INDEX moves_state_finished_at_idx ON moves (state, finished_at);
CREATE INDEX move_events_at_idx ON move_events (at);
CREATE INDEX cooldowns_scope_until_idx ON cooldowns (scope, until);
CREATE INDEX quarantines_until_idx ON quarantines (until);
CREATE INDEX tasks_state_beat_at_idx ON tasks (state, beat_at);
CREATE INDEX drains_state_idx ON drains (state);
CREATE INDEX drains_host_idx ON drains (host);
CREATE INDEX maintenances_state_idx ON maintenances (state);
CREATE INDEX moves_checked_at_idx ON moves (checked_at);
CREATE INDEX notifications_at_idx ON notifications (at);
CREATE UNIQUE INDEX notifications_uuid_idx ON notifications (uuid);
CREATE INDEX notifications_sent_at_idx ON notifications (sent_at, sequence);
CREATE UNIQUE INDEX notifications_sequence_idx ON notifications (sequence);
CREATE INDEX moves_created_at_idx ON moves (created_at);
CREATE INDEX plans_finished_at_idx ON plans (finished_at);
CREATE INDEX evaluations_aggregate_at_idx ON evaluations (aggregate, at);
CREATE INDEX evaluations_at_idx ON evaluations (at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('notifications',4);
COMMIT;
