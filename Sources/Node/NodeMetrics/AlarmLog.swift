package import Core
import Waku

/// Conditions that an operator must know about.
package enum AlarmKind: String, MetricLabel {
    package static let labelName = "alarm"
    /// No message was received on the shard for too long.
    case silence
    case relayDetached = "relay_detached"
    /// Messages may have been lost between the relay and this node.
    case gap
    /// Messages are missing: no store was read to its end.
    case catchUpIncomplete = "catch_up_incomplete"
    /// Answers published by a relay are not found in the stores of other relays. It is the last one used for publishing from now on.
    case answersUnconfirmed = "answers_unconfirmed"
    /// The circuit breaker is not closed.
    case gorushGivenUp = "gorush_given_up"
    /// gorush has not answered a post for too long.
    case gorushSlow = "gorush_slow"
    /// Wrong gorush credentials, or a wrong URL.
    case gorushMisconfigured = "gorush_misconfigured"
    /// APNs or Firebase do not accept gorush's certificate, key or account.
    case pushServiceCredentials = "push_service_credentials"
    /// A Web Push service does not accept this node's VAPID key.
    case webPushKeyRefused = "web_push_key_refused"
    /// Push services wait for seconds until something can be posted to them, because too many have posts in flight.
    case webPushPlaces = "web_push_places"
    /// Too many tokens fail with the same error, so none is removed.
    case tokensHeldOff = "tokens_held_off"
    case storeFails = "store_fails"
    /// This machine's clock differs from the database's, or from the Waku node's.
    case clock
    /// Many pieces of work were refused within a minute: the reason names the limit, and the standing of the payers.
    case underAttack = "under_attack"
    /// `registration-count` or `store-mib` is reached, and registrations that no one has asked for make room for new devices.
    case registrationsDisplaced = "registrations_displaced"
    /// The configuration could not be read again: the next start would fail.
    case reloadFailed = "reload_failed"

    /// The title on the status page.
    package var title: String {
        switch self {
        case .silence: "No messages on the shard"
        case .relayDetached: "Relay detached"
        case .gap: "Messages may have been missed"
        case .catchUpIncomplete: "Missed messages were not all looked up"
        case .answersUnconfirmed: "Answers through a relay are not confirmed"
        case .gorushGivenUp: "gorush unavailable"
        case .gorushSlow: "gorush is slow"
        case .gorushMisconfigured: "gorush can't be used as configured"
        case .pushServiceCredentials: "gorush's certificate, key or account is not accepted"
        case .webPushKeyRefused: "A push service does not accept the VAPID key"
        case .webPushPlaces: "Push services wait for others"
        case .tokensHeldOff: "Too many tokens fail alike"
        case .storeFails: "Database can't be written or read"
        case .clock: "This machine's clock differs"
        case .underAttack: "Under attack"
        case .registrationsDisplaced: "Registrations make room for new devices"
        case .reloadFailed: "The configuration can't be reloaded"
        }
    }

    /// Whether the results of the node's checks tell the same.
    package var hasCheck: Bool {
        switch self {
        case .silence, .relayDetached, .gap, .catchUpIncomplete, .gorushGivenUp, .gorushSlow, .webPushKeyRefused, .storeFails, .clock: true
        case .answersUnconfirmed, .gorushMisconfigured, .pushServiceCredentials, .webPushPlaces, .tokensHeldOff, .underAttack,
            .registrationsDisplaced, .reloadFailed:
            false
        }
    }

    /// The section of the article Troubleshooting that describes the alarm and its remedy.
    package var section: TroubleshootingSection {
        switch self {
        case .silence, .relayDetached: .messages
        case .gap, .catchUpIncomplete, .answersUnconfirmed: .missed
        case .gorushGivenUp, .gorushSlow, .gorushMisconfigured, .pushServiceCredentials, .webPushKeyRefused, .webPushPlaces, .tokensHeldOff,
            .underAttack, .registrationsDisplaced:
            .notifications
        case .storeFails, .clock: .machine
        case .reloadFailed: .process
        }
    }

    /// An alarm without a defined end is over if it is not raised again within this time; nil for alarms that are cleared.
    var expiry: Duration? {
        switch self {
        case .silence, .relayDetached, .answersUnconfirmed, .gorushGivenUp, .gorushSlow, .storeFails, .clock, .underAttack,
            .registrationsDisplaced, .webPushPlaces, .reloadFailed:
            nil
        case .gap, .catchUpIncomplete, .gorushMisconfigured, .pushServiceCredentials, .webPushKeyRefused: .seconds(600)
        case .tokensHeldOff: .seconds(3600)
        }
    }
}

/// A heading of the article Troubleshooting.
package enum TroubleshootingSection: String, CaseIterable, Sendable {
    case messages = "No messages come in"
    case missed = "Messages are missed"
    case notifications = "Notifications do not arrive"
    case machine = "The database, the disk, the machine"
    case process = "The process"

    /// The fragment of the section's address in documentation that DocC makes.
    package var anchor: String { rawValue.replacing(",", with: "").replacing(" ", with: "-") }
}

package struct Alarm: Hashable, Sendable {
    package let kind: AlarmKind
    /// The latest reason, as logged.
    package fileprivate(set) var reason: String
    package let since: Timestamp
    package fileprivate(set) var last: Timestamp
    /// How often it was raised.
    package fileprivate(set) var count = 1
    package fileprivate(set) var ended: Timestamp?

    package func isActive(at now: Timestamp) -> Bool {
        // It may have been raised while the clock was ahead.
        ended == nil && kind.expiry.map { max(now.since(last), last.since(now)) < $0 } ?? true
    }
}

/// The active alarms and the latest others. Events and time are inputs. An alarm that is raised while it is active is not a new one.
package struct AlarmLog {
    package static let limit = 50

    /// Latest first.
    package private(set) var alarms: [Alarm] = []

    /// - Returns: whether this is a new alarm.
    package mutating func raise(_ kind: AlarmKind, _ reason: String, at now: Timestamp) -> Bool {
        if let index = alarms.firstIndex(where: { $0.kind == kind }), alarms[index].isActive(at: now) {
            alarms[index].reason = reason
            alarms[index].last = now
            alarms[index].count += 1
            return false
        }
        alarms.insert(Alarm(kind: kind, reason: reason, since: now, last: now), at: 0)
        if alarms.count > Self.limit, let last = alarms.lastIndex(where: { !$0.isActive(at: now) }) { alarms.remove(at: last) }
        return true
    }

    /// Replaces the reason of the alarm if it is active, which does not extend it.
    package mutating func explain(_ kind: AlarmKind, _ reason: String, at now: Timestamp) {
        guard let index = alarms.firstIndex(where: { $0.kind == kind }), alarms[index].isActive(at: now) else { return }
        alarms[index].reason = reason
    }

    /// Ends the alarm if it is active.
    package mutating func clear(_ kind: AlarmKind, at now: Timestamp) {
        guard let index = alarms.firstIndex(where: { $0.kind == kind }), alarms[index].isActive(at: now) else { return }
        alarms[index].ended = now
    }

    package func isActive(_ kind: AlarmKind, at now: Timestamp) -> Bool { active(kind, at: now) != nil }

    /// The alarm of this kind if it is active.
    package func active(_ kind: AlarmKind, at now: Timestamp) -> Alarm? {
        alarms.first { $0.kind == kind }.flatMap { $0.isActive(at: now) ? $0 : nil }
    }
}
