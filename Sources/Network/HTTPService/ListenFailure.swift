import Foundation
import NIOCore

/// Why an address can't be listened on.
package enum ListenFailure {
    /// Completes `can't listen on ADDRESS: `.
    package static func reason(_ error: any Error) -> String {
        (error as? IOError)?.errnoCode == EADDRNOTAVAIL
            ? "this machine does not have this address." : "is another program using it?"
    }
}
