#!/bin/bash
# Devstack plugin of Kronos for Nova: the services of Nova load it, nothing else is started.

KRONOS_XTRACE=$(set +o | grep xtrace)
set +o xtrace

function kronos_install {
    setup_develop "$KRONOS_DIR/kronos_nova/client"
    setup_develop "$KRONOS_DIR"
    if [[ "$KRONOS_INSTALL_PROMETHEUS" == "True" ]]; then
        install_package prometheus
        restart_service prometheus
    fi
}

# kronos_configure_file FILE: what every service that loads Kronos needs
function kronos_configure_file {
    local file=$1
    # The drivers that are set stay: the option may be given several times.
    local drivers
    drivers=$(iniget_multiline "$file" oslo_messaging_notifications driver)
    if [[ " $drivers " != *" kronos "* ]]; then
        # shellcheck disable=SC2086 # one word a driver
        iniset_multiline "$file" oslo_messaging_notifications driver $drivers kronos
    fi
    iniset "$file" kronos automation "$KRONOS_AUTOMATION"
    iniset "$file" kronos include_unassigned_hosts True
    iniset "$file" kronos evaluation_interval "$KRONOS_EVALUATION_INTERVAL"
    iniset "$file" kronos policies_file "$KRONOS_POLICIES_FILE"
    iniset "$file" kronos_prometheus url "$KRONOS_PROMETHEUS_URL"
    iniset "$file" kronos_database connection "$(database_connection_url kronos)"
}

function kronos_configure {
    local file
    # Of the API, of the cells' conductors, and of nova-compute where it has one already.
    for file in "$NOVA_CONF_DIR"/nova*.conf; do
        kronos_configure_file "$file"
    done
    if [[ ! -f "$KRONOS_POLICIES_FILE" ]]; then
        sudo install -m 644 -o "$STACK_USER" "$KRONOS_DIR/etc/kronos/policies/$KRONOS_RECIPE" \
            "$KRONOS_POLICIES_FILE"
    fi
    if kronos_has_database; then
        recreate_database kronos
        "$(kronos_bin_dir)/kronos-manage" --config-file "$NOVA_CONF" db sync control
    fi
}

# The node that makes the control database, which all nodes use. devstack makes Nova's databases
# on the same node.
function kronos_has_database {
    is_service_enabled n-api
}

function kronos_bin_dir {
    get_python_exec_prefix
}

# What of Nova and of the databases is not as Kronos needs it: before anything relies on it.
function kronos_check_upgrade {
    "$(kronos_bin_dir)/kronos-status" --config-file "$NOVA_CONF" upgrade check
}

# Policies, Prometheus, Nova, placement, database and broker, each asked. What it finds, such as a
# Prometheus that is not there yet, is reported and does not end stack.sh.
function kronos_test_config {
    local code=0
    "$(kronos_bin_dir)/kronos-test-config" --config-file "$NOVA_CONF" || code=$?
    if (( code )); then
        echo_summary "kronos-test-config has found problems (exit code $code), see above"
    fi
}

function kronos_clean {
    sudo rm -f "$KRONOS_POLICIES_FILE"
}

if is_service_enabled kronos; then
    case "${1:-}/${2:-}" in
        stack/install)
            echo_summary "Installing Kronos for Nova"
            kronos_install
            ;;
        stack/post-config)
            echo_summary "Configuring Kronos for Nova"
            kronos_configure
            ;;
        stack/extra)
            if kronos_has_database; then
                kronos_check_upgrade
            fi
            ;;
        stack/test-config)
            if kronos_has_database; then
                kronos_test_config
            fi
            ;;
    esac
    case "${1:-}" in
        unstack)
            # Kronos ends with Nova's services; a Prometheus of our own has to be stopped.
            if [[ "$KRONOS_INSTALL_PROMETHEUS" == "True" ]]; then
                stop_service prometheus
            fi
            ;;
        clean)
            kronos_clean
            ;;
    esac
fi

$KRONOS_XTRACE
