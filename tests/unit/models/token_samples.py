"""Short texts of many kinds, written for these tests: the rates of the estimate were fitted on them."""

# ruff: noqa: E501, RUF001 - the texts are what they are: long lines, and letters of many scripts
import base64
import hashlib

_BYTES = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(40))

PROSE = {
    "english": (
        "Yesterday we finally moved the old warehouse system to the new server. The migration took about six hours, mostly"
        " because nobody remembered where the supplier addresses were kept. Maria suggested that we write everything down"
        " this time, so that whoever comes after us has an easier life. We agreed, and she started a page on the wiki.\n\n"
        "There are still three open questions: who pays for the second disk, whether the night backup should run twice,"
        " and what we tell the customers in Norway when their orders arrive a day late."
    ),
    "chat": (
        "hey, are you around tomorrow? i was thinking we could grab lunch near the station :) my train leaves at 2pm lol"
        " so it has to be quick... also did you ever hear back from Tom about the tickets??"
    ),
    "markdown": (
        "# Release plan\n\n- **Scope**: search, export, and the new login page\n- **Owner**: Priya\n\n| step | when | done |\n"
        "|------|------|------|\n| freeze | Monday | yes |\n| smoke test | Tuesday | no |\n\n> Nothing ships on a Friday.\n\n"
        "See [the checklist](https://example.org/wiki/release-checklist?rev=7) for details."
    ),
    "german": (
        "Gestern haben wir endlich das alte Lagersystem auf den neuen Server umgezogen. Der Umzug dauerte ungefähr sechs"
        " Stunden, vor allem weil niemand mehr wusste, wo die Lieferantenadressen gespeichert waren. Übermorgen prüfen"
        " wir die Datensicherung und die Rechnungsnummern noch einmal gründlich."
    ),
    "french": (
        "Hier, nous avons enfin déplacé l'ancien système vers le nouveau serveur. Le transfert a duré six heures, surtout"
        " parce que personne ne savait où se trouvaient les adresses des fournisseurs. Il reste à vérifier les sauvegardes."
    ),
    "spanish": (
        "Ayer por fin trasladamos el viejo sistema del almacén al servidor nuevo. La migración duró unas seis horas, sobre"
        " todo porque nadie recordaba dónde estaban las direcciones de los proveedores. Mañana revisaremos las copias."
    ),
    "polish": (
        "Wczoraj wreszcie przenieśliśmy stary system magazynowy na nowy serwer. Przeprowadzka trwała około sześciu godzin,"
        " głównie dlatego, że nikt nie pamiętał, gdzie zapisano adresy dostawców. Jutro sprawdzimy kopie zapasowe."
    ),
    "turkish": (
        "Dün nihayet eski depo sistemini yeni sunucuya taşıdık. Taşıma yaklaşık altı saat sürdü, çünkü tedarikçi"
        " adreslerinin nerede saklandığını kimse hatırlamıyordu. Yarın yedekleri yeniden kontrol edeceğiz."
    ),
    "vietnamese": (
        "Hôm qua cuối cùng chúng tôi đã chuyển hệ thống kho cũ sang máy chủ mới. Việc chuyển mất khoảng sáu giờ, chủ yếu vì"
        " không ai nhớ địa chỉ của các nhà cung cấp được lưu ở đâu. Ngày mai chúng tôi sẽ kiểm tra lại các bản sao lưu."
    ),
}
SCRIPTS = {
    "russian": (
        "Вчера мы наконец перенесли старую складскую систему на новый сервер. Переезд занял около шести часов, в основном"
        " потому, что никто не помнил, где хранятся адреса поставщиков. Завтра мы ещё раз проверим резервные копии."
    ),
    "ukrainian": (
        "Учора ми нарешті перенесли стару систему складу на новий сервер. Переїзд тривав близько шести годин, бо ніхто не"
        " пам'ятав, де зберігаються адреси постачальників. Завтра ми ще раз перевіримо резервні копії."
    ),
    "greek": (
        "Χθες μεταφέραμε επιτέλους το παλιό σύστημα της αποθήκης στον νέο διακομιστή. Η μεταφορά κράτησε περίπου έξι ώρες,"
        " επειδή κανείς δεν θυμόταν πού ήταν οι διευθύνσεις των προμηθευτών."
    ),
    "hebrew": (
        "אתמול העברנו סוף סוף את מערכת המחסן הישנה לשרת החדש. ההעברה נמשכה כשש שעות, בעיקר כי איש לא זכר היכן נשמרו הכתובות"
        " של הספקים. מחר נבדוק שוב את הגיבויים."
    ),
    "arabic": (
        "نقلنا أمس أخيرا نظام المستودع القديم إلى الخادم الجديد. استغرق النقل نحو ست ساعات، لأن أحدا لم يتذكر أين حفظت"
        " عناوين الموردين. سنراجع النسخ الاحتياطية غدا مرة أخرى."
    ),
    "persian": (
        "دیروز سرانجام سامانه قدیمی انبار را به سرور جدید منتقل کردیم. انتقال حدود شش ساعت طول کشید، چون کسی به یاد نداشت"
        " نشانی تأمین‌کنندگان کجا ذخیره شده است."
    ),
    "hindi": (
        "कल हमने आखिरकार पुराने गोदाम की प्रणाली को नए सर्वर पर पहुँचा दिया। इसमें लगभग छह घंटे लगे, क्योंकि किसी को याद नहीं था कि"
        " आपूर्तिकर्ताओं के पते कहाँ रखे हैं। कल हम बैकअप फिर से जाँचेंगे।"
    ),
    "bengali": "গতকাল আমরা অবশেষে পুরনো গুদামের ব্যবস্থা নতুন সার্ভারে সরিয়েছি। এতে প্রায় ছয় ঘণ্টা লেগেছে, কারণ ঠিকানাগুলো কোথায় ছিল কেউ জানত না।",
    "tamil": "நேற்று நாங்கள் பழைய கிடங்கு அமைப்பை புதிய சேவையகத்திற்கு மாற்றினோம். அதற்கு ஆறு மணி நேரம் ஆனது.",
    "thai": "เมื่อวานนี้เราย้ายระบบคลังสินค้าเก่าไปยังเซิร์ฟเวอร์ใหม่ได้สำเร็จ ใช้เวลาประมาณหกชั่วโมง เพราะไม่มีใครจำได้ว่าที่อยู่ของผู้ขายเก็บไว้ที่ไหน",
    "chinese": "昨天我们终于把旧的仓库系统迁移到了新的服务器上。迁移花了大约六个小时，主要是因为没有人记得供应商的地址保存在哪里。明天我们会再检查一遍备份，然后通知挪威的客户。",
    "japanese": "昨日、ようやく古い倉庫システムを新しいサーバーに移しました。移行には約六時間かかりました。仕入先の住所がどこに保存されているか、誰も覚えていなかったからです。",
    "korean": "어제 우리는 마침내 오래된 창고 시스템을 새 서버로 옮겼습니다. 공급업체 주소가 어디에 저장되어 있는지 아무도 기억하지 못해서 여섯 시간쯤 걸렸습니다.",
    "emoji": "Great 🎉🎉 see you at 🏖️! 👍🏽 😂😂😂 ❤️ 🚀 team 👩‍💻👨‍👩‍👧 ✅ ☕",
}
CODE = {
    "python": (
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Order:\n    order_id: str\n    totalAmount: float"
        " = 0.0\n\n    def with_tax(self, *, rate: float = 0.19) -> 'Order':\n        if rate < 0 or rate > 1:\n            raise"
        ' ValueError(f"bad rate: {rate!r}")\n        return Order(self.order_id, self.totalAmount * (1 + rate))\n\n\n'
        "orders = [Order(f'A-{n:04}') for n in range(10)]\nprint(sum(o.with_tax().totalAmount for o in orders if o))\n"
    ),
    "javascript": (
        "export async function fetchUsers(apiUrl, {limit = 20, onError} = {}) {\n  const res = await fetch(`${apiUrl}/users"
        "?limit=${limit}`);\n  if (!res.ok) {\n    onError?.(new Error(res.statusText));\n    return [];\n  }\n  return (await"
        " res.json()).map((u) => ({...u, fullName: `${u.first} ${u.last}`}));\n}\n"
    ),
    "json": (
        '{"id":"ord_7F3k","status":"shipped","items":[{"sku":"AX-221","qty":3,"price":19.99},{"sku":"BT-9","qty":1,"price":'
        '249.0}],"address":{"street":"Elm Rd 12","zip":"90210","country":"US"},"updated_at":"2025-03-14T09:26:53Z"}'
    ),
    "log": (
        "2025-03-14 09:26:53,589 ERROR [worker-3] app.queue: job 81723 failed after 3 attempts: ConnectionResetError(104)\n"
        '  File "/srv/app/queue/worker.py", line 212, in run_once\n    await self._client.send(payload, timeout=30)\n'
        "2025-03-14 09:26:54,001 INFO  [worker-3] app.queue: requeued job 81723 (delay=5.0s)\n"
    ),
    "shell": (
        "$ ls -la src/\ntotal 48\ndrwxr-xr-x  6 dev dev  4096 Mar 14 09:26 .\n-rw-r--r--  1 dev dev 12873 Mar 14 09:20 main.rs\n"
        "-rw-r--r--  1 dev dev   904 Mar 13 17:02 config.toml\n$ git log --oneline | head -3\n3f9a1c2 fix: retry on 502\n"
    ),
    "diff": (
        "--- a/app/models.py\n+++ b/app/models.py\n@@ -41,7 +41,9 @@ class User(Base):\n     email = Column(String(255),"
        " unique=True)\n-    active = Column(Boolean, default=True)\n+    is_active = Column(Boolean, default=True,"
        " nullable=False)\n+    last_seen = Column(DateTime(timezone=True))\n"
    ),
    "csv": "date,region,units,revenue\n2025-01-01,north,182,4512.80\n2025-01-02,south,97,2203.15\n2025-01-03,west,1204,30519.00\n",
    "numbers": "3.14159 2.71828 1,000,000 42 1729 6.022e23 0.00729735 299792458 16777216 -273.15 20250314 555-0199",
    "indented": "\n".join(" " * (4 * (n % 8)) + "x = y" for n in range(24)),
    "blank": "a\n\n\n\nb\t\t\tc        d\n \n \ne" * 4,
}
BLOBS = {
    "base64": base64.b64encode(_BYTES).decode(),
    "hex": _BYTES[:600].hex(),
    "uuids": "\n".join(
        f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}"
        for h in (_BYTES[n : n + 16].hex() for n in range(0, 320, 16))
    ),
}
SAMPLES = PROSE | SCRIPTS | CODE | BLOBS
