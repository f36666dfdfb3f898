import Foundation

/// A path without its percent-encoding; nil when that is malformed. Foundation is asked only when there is some: it copies the text several times.
package func percentDecoded(_ path: some StringProtocol) -> String? {
    path.utf8.contains(UInt8(ascii: "%")) ? path.removingPercentEncoding : String(path)
}
