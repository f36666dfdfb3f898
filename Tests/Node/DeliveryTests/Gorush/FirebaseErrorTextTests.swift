import Foundation
import Core
import TestSupport
import Testing

@testable import Delivery

struct FirebaseErrorTextTests {
    /// As the libraries write them, with their own words around the server's.
    @Test(
        arguments: [
            // google/go-gcm.
            ("NotRegistered", .dead), ("InvalidRegistration", .doubtful), ("MissingRegistration", .doubtful),
            ("MismatchSenderId", .doubtful),
            ("Unavailable", .other), ("InternalServerError", .other),
            // appleboy/go-fcm below 1.0: response.go.
            ("unregistered device", .dead), ("invalid registration token", .doubtful), ("mismatched sender id", .doubtful),
            ("missing registration token", .doubtful), ("invalid package name", .message), ("message is too big", .message),
            ("invalid data key", .message), ("invalid time to live", .message), ("timeout", .other), ("internal server error", .other),
            ("device message rate exceeded", .other), ("topics message rate exceeded", .other), ("unknown error type", .other),
            ("check that the provided parameters have the right name and type", .doubtful),
            ("invalid APNs credentials", .operatorsMistake),
            // Its client.go.
            ("401 error: 401 Unauthorized", .operatorsMistake), ("404 error: 404 Not Found", .operatorsMistake),
            ("503 error: 503 Service Unavailable", .other), ("400 error: 400 Bad Request", .other),
            ("Post https://fcm.googleapis.com/fcm/send: dial tcp: i/o timeout", .other),
            // firebase-admin-go 4.
            ("Requested entity was not found.", .dead), ("SenderId mismatch", .doubtful),
            ("The registration token is not a valid FCM registration token", .doubtful),
            ("Request contains an invalid argument.", .doubtful), ("Recipient of the message is not set.", .doubtful),
            ("Android message is too big", .message), ("Auth error from APNS or Web Push Service", .operatorsMistake),
            ("Request is missing required authentication credential. Expected OAuth 2 access token.", .operatorsMistake),
            ("Permission 'cloudmessaging.messages.create' denied on resource '//x' (or it may not exist).", .operatorsMistake),
            (
                #"unknown error while making an http call: Post "https://x": oauth2: cannot fetch token: 400: {"error":"invalid_grant"}"#,
                .operatorsMistake
            ),
            ("unknown error while making an http call: Post \"https://x\": EOF", .other), ("Internal error encountered.", .other),
            ("The service is currently unavailable.", .other), ("unexpected http response with status: 502\n<html>", .other),
            // firebase-admin-go 3.
            (
                "http error status: 404; reason: app instance has been unregistered; code: registration-token-not-registered; details: x",
                .dead
            ),
            ("http error status: 403; reason: sender id does not match regisration token; code: mismatched-credential", .doubtful),
            ("http error status: 400; reason: request contains an invalid argument; code: invalid-argument; details: x", .doubtful),
            ("http error status: 401; reason: apns certificate or auth key was invalid; code: invalid-apns-credentials", .operatorsMistake),
            ("http error status: 503; reason: backend servers are temporarily unavailable; code: server-unavailable", .other),
            // Of other senders, or of none.
            ("Unregistered", .other), ("BadDeviceToken", .other), ("an unregistered device", .other), ("not registered", .other),
            (" ", .other),
        ] as [(String, TokenVerdict)])
    func verdicts(text: String, verdict: TokenVerdict) {
        #expect(TokenVerdict(platform: .firebase, error: text) == verdict)
        // APNs has none of these texts, so they must not end an APNs token.
        let forAPNs = TokenVerdict(platform: .apn, error: text)
        #expect(forAPNs != .dead || text == "Unregistered")
    }

    @Test func transientFailuresAreDistinguishedFromUnknownOnes() {
        #expect(FailureReason(platform: .firebase, error: "device message rate exceeded") == .transient)
        #expect(FailureReason(platform: .firebase, error: "message is too big") == .message)
        #expect(FailureReason(platform: .firebase, error: "something new") == .other)
    }

    /// No row is hidden by one before it.
    @Test func eachRowIsReached() {
        for row in FirebaseErrorText.table { #expect(FirebaseErrorText.reason(for: row.text) == row.reason, "\(row.text)") }
        #expect(Set(FirebaseErrorText.table.map(\.text)).count == FirebaseErrorText.table.count)
    }

    /// Each text is in the row of its verdict in the article on deliveries.
    @Test func theArticleHasEachText() throws {
        let file = Repository.file("Sources/Node/PushNode/PushNode.docc/Deliveries.md")
        let lines = try String(contentsOf: file, encoding: .utf8).lowercased().split(separator: "\n")
        let names: [TokenVerdict: String] = [
            .dead: "dead", .doubtful: "doubtful", .operatorsMistake: "operator", .message: "none: the message", .other: "none",
        ]
        for row in FirebaseErrorText.table {
            let name = try #require(names[row.reason.verdict])
            let rows = lines.filter { $0.hasPrefix("| \(name)") }
            #expect(rows.contains { $0.contains("`\(row.text.trimmingCharacters(in: .whitespaces))`") }, "\(row.text): \(name)")
        }
    }
}
