// SPDX-License-Identifier: BSD-3-Clause
/*
 * The command line. Every error names the option and its argument, and ends the program with
 * status 2.
 *
 * --capture and --limit name a port that may come later on the line, and so does a wire: they are
 * resolved at the end.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "board/board.h"
#include "cordon/cmd.h"
#include "cordon/ipsec.h"

#define OPTIONS_LATER_MAX 256

enum { KEY_PORT = 0x100, KEY_CAPTURE, KEY_IRQ, KEY_LIMIT, KEY_FIRMWARE, KEY_LOG_LEVEL };

/**
 * struct later - an option that names a port
 * @key: KEY_CAPTURE or KEY_LIMIT
 * @arg: argument
 */
struct later {
	int key;
	char *arg;
};

/**
 * struct parse - state of the parser
 * @options: result
 * @later: options to be resolved
 * @later_count: how many
 */
struct parse {
	struct board_options *options;
	struct later later[OPTIONS_LATER_MAX];
	unsigned int later_count;
};

/**
 * struct name - a name for a value
 * @name: name
 * @value: value
 */
struct name {
	const char *name;
	uint32_t value;
};

static const struct name ciphers[] = {
	{ "null", 1u << CORDON_CIPHER_NULL },
	{ "aes-cbc", 1u << CORDON_CIPHER_AES_CBC },
	{ "aes-ctr", 1u << CORDON_CIPHER_AES_CTR },
	{ "aes-gcm", 1u << CORDON_CIPHER_AES_GCM },
	{ "aes-gmac", 1u << CORDON_CIPHER_AES_GMAC },
	{ "aes-ccm", 1u << CORDON_CIPHER_AES_CCM },
	{ "chacha20-poly1305", 1u << CORDON_CIPHER_CHACHA20_POLY1305 },
	{ "all", ~0u },
	{ 0 },
};
static const struct name auths[] = {
	{ "hmac-sha1", 1u << CORDON_AUTH_HMAC_SHA1 },
	{ "hmac-sha256", 1u << CORDON_AUTH_HMAC_SHA256 },
	{ "hmac-sha384", 1u << CORDON_AUTH_HMAC_SHA384 },
	{ "hmac-sha512", 1u << CORDON_AUTH_HMAC_SHA512 },
	{ "aes-xcbc", 1u << CORDON_AUTH_AES_XCBC },
	{ "aes-cmac", 1u << CORDON_AUTH_AES_CMAC },
	{ "all", ~0u },
	{ 0 },
};
static const struct name modes[] = {
	{ "transport", 1u << CORDON_MODE_TRANSPORT },
	{ "tunnel", 1u << CORDON_MODE_TUNNEL },
	{ "beet", 1u << CORDON_MODE_BEET },
	{ 0 },
};
static const struct name offloads[] = {
	{ "crypto", 1u << CORDON_OFFLOAD_CRYPTO },
	{ "packet", 1u << CORDON_OFFLOAD_PACKET },
	{ "all", ~0u },
	{ 0 },
};
static const struct name families[] = {
	{ "inet", 1u << CORDON_FAMILY_INET },
	{ "inet6", 1u << CORDON_FAMILY_INET6 },
	{ 0 },
};
static const struct name key_bits[] = {
	{ "128", 1 },
	{ "192", 2 },
	{ "256", 4 },
	{ 0 },
};
static const struct name icvs[] = {
	{ "8", 1u << 7 },
	{ "12", 1u << 11 },
	{ "16", 1u << 15 },
	{ "24", 1u << 23 },
	{ "32", 1u << 31 },
	{ 0 },
};
static const struct name sa_flags[] = {
	{ "esn", CORDON_SA_ESN },
	{ "encap", CORDON_SA_ENCAP },
	{ "no-ecn", CORDON_SA_NO_ECN },
	{ "decap-dscp", CORDON_SA_DECAP_DSCP },
	{ "no-dscp", CORDON_SA_NO_DSCP },
	{ "no-pmtu-disc", CORDON_SA_NO_PMTU_DISC },
	{ "seq-may-wrap", CORDON_SA_SEQ_MAY_WRAP },
	{ 0 },
};
static const struct name features[] = {
	{ "promiscuous", CORDON_PORT_PROMISCUOUS },
	{ "all-multicast", CORDON_PORT_ALL_MULTICAST },
	{ "vlan-strip", CORDON_PORT_VLAN_STRIP },
	{ "vlan-filter", CORDON_PORT_VLAN_FILTER },
	{ "rx-csum", CORDON_PORT_RX_CSUM },
	{ "rss", CORDON_PORT_RSS },
	{ "esp", CORDON_PORT_ESP },
	{ "tx-csum", CORDON_FEATURE_TX_CSUM },
	{ "tso", CORDON_FEATURE_TSO },
	{ "uso", CORDON_FEATURE_USO },
	{ "tx-vlan", CORDON_FEATURE_TX_VLAN },
	{ 0 },
};

/* Names for enum board_log_level. */
static const char *const levels[] = { "error", "warning", "info", "debug" };

static const struct argp_option argp_options[] = {
	{ "port", KEY_PORT, "name=NAME,socket=PATH,wire=WIRE[,mac=ADDRESS][,group=NAME][,queues=N]",
	  0,
	  "Add a port. WIRE is the name of another port, unix:LOCAL:REMOTE, tap:INTERFACE or none",
	  0 },
	{ "capture", KEY_CAPTURE, "PORT=FILE", 0,
	  "Write what PORT sends and receives to FILE (pcapng)", 0 },
	{ "limit", KEY_LIMIT, "PORT:NAME=VALUE[,NAME=VALUE]...", 0,
	  "Take capabilities away from PORT", 0 },
	{ "irq", KEY_IRQ, "msix|msi", 0, "Interrupts of all ports (msix)", 0 },
	{ "firmware", KEY_FIRMWARE, "PATH", 0, "Firmware program", 0 },
	{ "log-level", KEY_LOG_LEVEL, "error|warning|info|debug", 0,
	  "Messages on standard error (warning)", 0 },
	{ 0 }
};

const char *argp_program_version = "cordond " CORDON_VERSION;

static void fail(struct argp_state *state, const char *option, const char *arg, const char *why)
{
	argp_error(state, "--%s %s: %s", option, arg, why);
	exit(argp_err_exit_status);
}

static bool parse_number(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	char *end;
	unsigned long long number;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 0);
	if (errno || *end || number < min || number > max)
		return false;
	*value = (uint32_t)number;
	return true;
}

static bool parse_mac(const char *text, uint8_t *mac)
{
	unsigned int byte[6], i;
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3],
		   &byte[4], &byte[5], &end) != 6 ||
	    text[end] || end != 17)
		return false;
	for (i = 0; i < 6; i++)
		mac[i] = (uint8_t)byte[i];
	/* A port's own address is a unicast one. */
	return !(mac[0] & 1) && memcmp(mac, "\0\0\0\0\0", 6) != 0;
}

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	return len && len < FW_IPC_NAME_MAX &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
		       len;
}

static bool is_path(const char *text)
{
	/* The socket is made under a longer name first. */
	return *text && strlen(text) + 1 < sizeof(((struct sockaddr_un *)0)->sun_path);
}

/* Stable and locally administered: a hash (FNV-1a) of name and socket. */
static void derive_mac(struct board_port_options *port)
{
	uint64_t hash = 0xcbf29ce484222325;
	const char *text[2] = { port->name, port->socket }, *at;
	unsigned int i;

	for (i = 0; i < 2; i++)
		for (at = text[i]; *at; at++)
			hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
	hash ^= hash >> 40;
	port->mac[0] = 0x02;
	for (i = 1; i < 6; i++)
		port->mac[i] = (uint8_t)(hash >> (8 * (i - 1)) & 0xff);
}

static const char *parse_wire(struct board_port_options *port, char *wire)
{
	char *remote;

	if (strcmp(wire, "none") == 0) {
		port->wire = FW_IPC_WIRE_NONE;
	} else if (strncmp(wire, "unix:", 5) == 0) {
		port->wire = FW_IPC_WIRE_UNIX;
		port->wire_local = wire + 5;
		remote = strchr(wire + 5, ':');
		if (!remote)
			return "wire: unix:LOCAL:REMOTE is expected";
		*remote++ = '\0';
		port->wire_remote = remote;
		if (!is_path(port->wire_local) || !is_path(remote))
			return "wire: path is empty or too long";
	} else if (strncmp(wire, "tap:", 4) == 0) {
		port->wire = FW_IPC_WIRE_TAP;
		port->wire_local = wire + 4;
		if (!wire[4] || strlen(wire + 4) > 15)
			return "wire: interface name is empty or too long";
	} else if (is_name(wire)) {
		port->wire = FW_IPC_WIRE_SHM;
		port->wire_local = wire;
	} else {
		return "wire: name of a port, unix:LOCAL:REMOTE, tap:INTERFACE or none is expected";
	}
	return NULL;
}

static const char *parse_port_value(struct board_port_options *port, int token, char *value,
				    bool *has_mac)
{
	uint32_t number;

	switch (token) {
	case 0:
		if (!is_name(value))
			return "name: letters, digits, '-', '_', '.', at most 31 of them";
		snprintf(port->name, sizeof(port->name), "%s", value);
		return NULL;
	case 1:
		port->socket = value;
		return is_path(value) ? NULL : "socket: path is empty or too long";
	case 2:
		return parse_wire(port, value);
	case 3:
		*has_mac = true;
		return parse_mac(value, port->mac)
			       ? NULL
			       : "mac: six bytes of a unicast address, such as 52:54:00:12:34:56";
	case 4:
		port->group = value;
		return is_name(value) ? NULL
				      : "group: letters, digits, '-', '_', '.', at most 31 of them";
	default:
		if (!parse_number(value, 1, CORDON_QUEUE_PAIRS_MAX, &number))
			return "queues: 1 to 16";
		port->queues = number;
		return NULL;
	}
}

static char *copy(struct argp_state *state, const char *text)
{
	char *copied = strdup(text);

	if (!copied)
		argp_failure(state, EXIT_FAILURE, ENOMEM, "options");
	return copied;
}

static void parse_port(struct argp_state *state, struct parse *parse, const char *arg)
{
	static char *const tokens[] = { "name", "socket", "wire", "mac", "group", "queues", NULL };
	struct board_port_options *port = &parse->options->ports[parse->options->port_count];
	char *rest, *value;
	bool seen[6] = { 0 }, has_mac = false;
	unsigned int i;

	if (parse->options->port_count == BOARD_PORTS_MAX)
		fail(state, "port", arg, "too many ports");
	memset(port, 0, sizeof(*port));
	port->queues = CORDON_QUEUE_PAIRS_MAX;
	rest = copy(state, arg);
	while (*rest) {
		int token = getsubopt(&rest, tokens, &value);
		const char *why;

		if (token < 0)
			why = "only name, socket, wire, mac, group and queues are known";
		else if (!value)
			why = "a value is missing";
		else if (seen[token])
			why = "something is given twice";
		else
			why = parse_port_value(port, token, value, &has_mac);
		if (why)
			fail(state, "port", arg, why);
		seen[token] = true;
	}
	if (!seen[0] || !seen[1] || !seen[2])
		fail(state, "port", arg, "name, socket and wire are needed");
	if (!has_mac)
		derive_mac(port);
	for (i = 0; i < parse->options->port_count; i++) {
		if (strcmp(parse->options->ports[i].name, port->name) == 0)
			fail(state, "port", arg, "there is a port with this name");
		if (strcmp(parse->options->ports[i].socket, port->socket) == 0)
			fail(state, "port", arg, "there is a port with this socket");
	}
	parse->options->port_count++;
}

static void parse_later(struct argp_state *state, struct parse *parse, int key, char *arg)
{
	if (parse->later_count == OPTIONS_LATER_MAX)
		argp_error(state, "too many options");
	parse->later[parse->later_count].key = key;
	parse->later[parse->later_count++].arg = arg;
}

static struct board_port_options *find_port(struct board_options *options, const char *name,
					    size_t len)
{
	unsigned int i;

	for (i = 0; i < options->port_count; i++)
		if (strlen(options->ports[i].name) == len &&
		    memcmp(options->ports[i].name, name, len) == 0)
			return &options->ports[i];
	return NULL;
}

static bool parse_mask(const struct name *names, const char *value, uint32_t *mask)
{
	for (; names->name; names++) {
		if (strcmp(names->name, value) == 0) {
			*mask |= names->value;
			return true;
		}
	}
	return false;
}

static bool parse_limit_value(struct board_port_options *port, int token, const char *value)
{
	struct fw_ipc_limits *limits = &port->limits;

	switch (token) {
	case 0:
		return parse_number(value, 1, ~0u, &limits->sa_max);
	case 1:
		return parse_number(value, 1, ~0u, &limits->policy_max);
	case 2:
		return parse_number(value, 1, CORDON_REPLAY_WINDOW_MAX, &limits->replay_window_max);
	case 3:
		return parse_mask(features, value, &limits->no_features);
	case 4:
		return parse_mask(ciphers, value, &limits->no_ciphers);
	case 5:
		return parse_mask(auths, value, &limits->no_auths);
	case 6:
		return parse_mask(modes, value, &limits->no_modes);
	case 7:
		return parse_mask(offloads, value, &limits->no_offloads);
	case 8:
		return parse_mask(key_bits, value, &limits->no_key_bits);
	case 9:
		return parse_mask(icvs, value, &limits->no_icv_bytes);
	case 10:
		return parse_mask(sa_flags, value, &limits->no_sa_flags);
	default:
		return parse_mask(families, value, &limits->no_families);
	}
}

static void resolve_limit(struct argp_state *state, struct board_options *options, const char *arg)
{
	static char *const tokens[] = {
		"sa-max", "policy-max", "replay-window-max", "no-feature", "no-cipher", "no-auth",
		"no-mode", "no-offload", "no-key-bits", "no-icv", "no-sa-flag", "no-family", NULL,
	};
	const char *colon = strchr(arg, ':');
	struct board_port_options *port;
	char *text, *rest, *value;

	if (!colon || !colon[1])
		fail(state, "limit", arg, "PORT:NAME=VALUE is expected");
	port = find_port(options, arg, (size_t)(colon - arg));
	if (!port)
		fail(state, "limit", arg, "no such port");
	text = copy(state, colon + 1);
	rest = text;
	while (*rest) {
		int token = getsubopt(&rest, tokens, &value);

		if (token < 0)
			fail(state, "limit", arg, "unknown name");
		if (!value || !parse_limit_value(port, token, value))
			fail(state, "limit", arg,
			     value ? "unknown or impossible value" : "a value is missing");
	}
	free(text);
}

static void resolve_capture(struct argp_state *state, struct board_options *options, char *arg)
{
	char *equals = strchr(arg, '=');
	struct board_port_options *port;

	if (!equals || !equals[1])
		fail(state, "capture", arg, "PORT=FILE is expected");
	port = find_port(options, arg, (size_t)(equals - arg));
	if (!port)
		fail(state, "capture", arg, "no such port");
	if (port->capture)
		fail(state, "capture", arg, "the port has a capture file");
	port->capture = equals + 1;
}

/* A wire between two ports must be named by both. */
static void resolve_wire(struct argp_state *state, struct board_options *options,
			 struct board_port_options *port)
{
	struct board_port_options *other;

	if (port->wire != FW_IPC_WIRE_SHM)
		return;
	other = find_port(options, port->wire_local, strlen(port->wire_local));
	if (!other || other == port)
		argp_error(state, "--port %s: wire %s: no other port has this name", port->name,
			   port->wire_local);
	else if (other->wire != FW_IPC_WIRE_SHM || strcmp(other->wire_local, port->name) != 0)
		argp_error(state, "--port %s: wire %s: that port isn't wired to this one",
			   port->name, port->wire_local);
	else
		port->wire_port = (unsigned int)(other - options->ports);
}

static void resolve(struct argp_state *state, struct parse *parse)
{
	struct board_options *options = parse->options;
	unsigned int i;

	if (!options->port_count)
		argp_error(state, "--port is needed");
	for (i = 0; i < parse->later_count; i++) {
		if (parse->later[i].key == KEY_CAPTURE)
			resolve_capture(state, options, parse->later[i].arg);
		else
			resolve_limit(state, options, parse->later[i].arg);
	}
	for (i = 0; i < options->port_count; i++)
		resolve_wire(state, options, &options->ports[i]);
}

static void parse_irq(struct argp_state *state, struct board_options *options, const char *arg)
{
	options->msi = strcmp(arg, "msi") == 0;
	if (!options->msi && strcmp(arg, "msix") != 0)
		fail(state, "irq", arg, "msix or msi is expected");
}

static void parse_log_level(struct argp_state *state, const char *arg)
{
	unsigned int i;

	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(arg, levels[i]) == 0) {
			board_log_level = (enum board_log_level)i;
			return;
		}
	}
	fail(state, "log-level", arg, "error, warning, info or debug is expected");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct parse *parse = state->input;

	switch (key) {
	case KEY_PORT:
		parse_port(state, parse, arg);
		return 0;
	case KEY_CAPTURE:
	case KEY_LIMIT:
		parse_later(state, parse, key, arg);
		return 0;
	case KEY_IRQ:
		parse_irq(state, parse->options, arg);
		return 0;
	case KEY_FIRMWARE:
		parse->options->firmware = arg;
		return 0;
	case KEY_LOG_LEVEL:
		parse_log_level(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: no argument is expected", arg);
		return 0;
	case ARGP_KEY_END:
		resolve(state, parse);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/**
 * board_options_parse - read the command line; ends the program in case of an error
 * @options: result; its strings live as long as the program
 * @argc: of main()
 * @argv: of main()
 *
 * Context: before the loop.
 */
void board_options_parse(struct board_options *options, int argc, char **argv)
{
	static struct parse parse;
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse_option,
		.doc = "Cordon network cards for virtual machines, over vfio-user.\v"
		       "Prints \"ready\" when all sockets exist. See cordond(8).",
	};

	argp_err_exit_status = 2;
	parse.options = options;
	argp_parse(&argp, argc, argv, 0, NULL, &parse);
}
