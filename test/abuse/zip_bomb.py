# A small archive that unpacks to a gigabyte.
import io, zipfile
packed = io.BytesIO()
with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    for number in range(8):
        archive.writestr(f"zeros{number}", b"\0" * (16 << 20))
print(len(packed.getvalue()))
try:
    with zipfile.ZipFile(packed) as archive:
        archive.extractall("unpacked")
    import time
    time.sleep(3)
    print("BREACH")
except OSError:
    print("held")
