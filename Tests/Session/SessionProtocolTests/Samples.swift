@testable import SessionProtocol
import TestSupport
import Testing
import WakuCrypto
import Core

/// A client's request: names and JSON values, in order.
struct RequestSample {
    var fields: [(name: String, json: String)]

    /// The subscription of the vectors' session id.
    static func sessionID() -> RequestSample {
        let vector = SessionVectors.derived.sessionId
        return RequestSample(fields: [
            ("pubkey", quoted(hexString(vector.pubkey.bytes))), ("session_ed25519", quoted(hexString(vector.sessionEd25519.bytes))),
            ("namespaces", "[-400,0,1,2,17]"), ("data", "true"), ("sig_ts", "\(vector.sigTs)"),
            ("signature", quoted(hexString(vector.signature.bytes))), ("service", "\"firebase\""),
            ("service_info", #"{"token":"abc"}"#), ("enc_key", quoted(String(repeating: "ab", count: 32))),
        ])
    }

    /// The subscription of the vectors' group.
    static func group() -> RequestSample {
        let vector = SessionVectors.derived.group03
        var sample = sessionID()
        sample["pubkey"] = quoted(hexString(vector.pubkey.bytes))
        sample["session_ed25519"] = nil
        sample["namespaces"] = "[11]"
        sample["data"] = "false"
        sample["signature"] = quoted(hexString(vector.signature.bytes))
        return sample
    }

    /// The subscription of the group, signed by one of its subaccounts.
    static func subaccount(_ vector: SessionVectors.Subaccount) -> RequestSample {
        var sample = group()
        sample["subaccount"] = quoted(hexString(vector.subaccount.bytes))
        sample["subaccount_sig"] = quoted(hexString(vector.subaccountSig.bytes))
        sample["signature"] = quoted(hexString(vector.signature.bytes))
        return sample
    }

    static func quoted(_ text: String) -> String { "\"\(text)\"" }

    var text: String { "{" + fields.map { "\"\($0.name)\":\($0.json)" }.joined(separator: ",") + "}" }

    subscript(name: String) -> String? {
        get { fields.first { $0.name == name }?.json }
        set {
            fields.removeAll { $0.name == name }
            if let newValue { fields.append((name, newValue)) }
        }
    }

    func with(_ name: String, _ json: String?) -> RequestSample {
        var sample = self
        sample[name] = json
        return sample
    }

    func subscription() throws -> SubscriptionForm { try SubscriptionForm(try JSONValue(parsing: text.utf8)) }
    func unsubscription() throws -> UnsubscriptionForm { try UnsubscriptionForm(try JSONValue(parsing: text.utf8)) }

    func subscriptionError() -> RequestError? { refusal { _ = try subscription() } }
    func unsubscriptionError() -> RequestError? { refusal { _ = try unsubscription() } }
}

func refusal(_ body: () throws -> Void) -> RequestError? {
    do {
        try body()
        return nil
    } catch let error as RequestError {
        return error
    } catch {
        Issue.record("\(error)")
        return nil
    }
}
