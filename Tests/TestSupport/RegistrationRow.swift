import StatusProtocol
import Core
import Waku
import WakuCrypto

/// A row in the JSON output of `admin registrations list` and `remove`.
package struct RegistrationRow: Decodable, Equatable {
    package let keyHash: String
    package let installation: String
    package let state: String
    package let version: UInt64

    package init(_ client: TestClient, state: String = "apn", version: UInt64 = 1) {
        keyHash = client.keyHash.hex
        installation = client.installationID.string
        self.state = state
        self.version = version
    }
}

/// A row in the JSON output of `admin registrations show`.
package struct RegistrationDetail: Decodable {
    package let row: RegistrationRow
    package let opened: Opened?

    package struct Opened: Decodable {
        package let enabled: Bool
        package let apnTopic: String
        package let deviceToken: String?
        package let accessToken: String?
    }
}
