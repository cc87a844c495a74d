"""What a command logs by the way is beside its answer, which a program reads."""

import json

from .test_profiles import FILE, populate, submission


def test_what_a_pause_drops_is_logged_to_stderr_and_the_answer_stays_one_document(installation, program, write):
    populate(installation)

    def call(*arguments: str):
        done = program(*arguments, "--data", installation.data)
        assert done.returncode == 0, done.stderr
        return done

    call("authority", "apply", write(FILE, "environment.json"))
    call("profile", "save", "Triage", "support", write(submission(), "profile.json"))
    populate(installation)
    call("profile", "trigger", "Triage", "support")
    cleared = call("profile", "clear", "Triage", "support")
    [receipt] = [json.loads(line) for line in cleared.stdout.splitlines()]
    assert receipt["operation"] == "profile_clear"
    assert "occurrence_dropped" in cleared.stderr
    assert "agent_class=Triage" in cleared.stderr.replace("\x1b[36m", "").replace("\x1b[0m", "").replace("\x1b[35m", "")
